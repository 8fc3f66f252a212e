// Producing: values are encrypted on their way to the broker; partitions that cannot be are answered here and never sent on.

package payload

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/encryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/recordbatch"
)

// refusedTopics is kept with an exchange: the answers for partitions that were not sent on.
type refusedTopics struct{}

// producing is one request.
type producing struct {
	*Handler

	exchange *flow.Exchange
	memory   *share
	room     int // how many bytes longer the request may become
}

func (h *Handler) produce(ctx context.Context, x *flow.Exchange, request *kmsg.ProduceRequest) error {
	memory, err := h.requests.share(ctx, toProduce(x, request))
	if err != nil {
		return err
	}
	x.Hold(memory.end)
	p := producing{h, x, memory, maxRequest - x.RequestSize}
	names := h.producedNames(ctx, x, request)
	var kept []kmsg.ProduceRequestTopic
	var refused []kmsg.ProduceResponseTopic
	for _, topic := range request.Topics {
		name := topic.Topic
		if x.Version >= 13 {
			name = names[topic.TopicID]
		}
		answer := kmsg.ProduceResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
		topic.Partitions, answer.Partitions = p.topic(ctx, name, topic.Partitions)
		if len(topic.Partitions) > 0 {
			kept = append(kept, topic)
		}
		if len(answer.Partitions) > 0 {
			refused = append(refused, answer)
		}
	}
	memory.settle()
	request.Topics = kept
	x.ChangeRequest()
	switch {
	case len(refused) == 0:
	case x.NoResponse:
		return fmt.Errorf("records of topic %s were refused, and with acks=0 only the end of the connection can say so", refused[0].Topic)
	case len(kept) == 0:
		x.Answer(&kmsg.ProduceResponse{Topics: refused})
	default:
		x.Keep(refusedTopics{}, refused)
	}
	return nil
}

// toProduce is how much memory a request is expected to take: small records become half as long again, there are two of all of them while a batch
// is made and two when the request is, and text is a quarter as long when it is compressed.
func toProduce(x *flow.Exchange, request *kmsg.ProduceRequest) int {
	for i := range request.Topics {
		for _, p := range request.Topics[i].Partitions {
			if recordbatch.AnyCompressed(p.Records) {
				return leastShare + 4*8*x.RequestSize
			}
		}
	}
	return leastShare + 8*x.RequestSize
}

func (h *Handler) producedNames(ctx context.Context, x *flow.Exchange, request *kmsg.ProduceRequest) map[[16]byte]string {
	if x.Version < 13 {
		return nil
	}
	ids := make([][16]byte, len(request.Topics))
	for i := range request.Topics {
		ids[i] = request.Topics[i].TopicID
	}
	return h.resolve(ctx, x, ids)
}

// produced adds to the broker's answer what was refused here.
func produced(x *flow.Exchange, response *kmsg.ProduceResponse) {
	refused, _ := x.Kept(refusedTopics{}).([]kmsg.ProduceResponseTopic)
	if len(refused) > 0 {
		response.Topics = append(response.Topics, refused...)
		x.ChangeResponse()
	}
}

// maxRequest is what a broker takes by default (socket.request.max.bytes): it ends the connection of who sends more.
const maxRequest = 100 << 20

// topic gives the partitions to send on, and the answers for those that are not.
func (p *producing) topic(ctx context.Context, topic string, partitions []kmsg.ProduceRequestTopicPartition) (
	[]kmsg.ProduceRequestTopicPartition, []kmsg.ProduceResponseTopicPartition,
) {
	var kept []kmsg.ProduceRequestTopicPartition
	var refused []kmsg.ProduceResponseTopicPartition
	for _, one := range partitions {
		code, message := kerr.UnknownTopicID, "the topic id is not known"
		if topic != "" {
			records, err := p.encrypt(ctx, topic, one.Records)
			if err == nil {
				p.room -= len(records) - len(one.Records)
				one.Records = records
				kept = append(kept, one)
				continue
			}
			p.failed(ctx, p.exchange, "producing", topic, one.Partition, err)
			code, message = whileProducing(err), "cipherlane: "+said(err)
		}
		answer := kmsg.NewProduceResponseTopicPartition()
		answer.Partition, answer.ErrorCode, answer.BaseOffset, answer.LogStartOffset, answer.LogAppendTime = one.Partition, code.Code, -1, -1, -1
		answer.ErrorMessage = &message
		refused = append(refused, answer)
	}
	return kept, refused
}

// said is what a client may know of an error: not its cause.
func said(err error) string {
	if r, ok := asRefusal(err); ok {
		return string(r.Code) + ": " + r.Detail
	}
	return err.Error()
}

// encrypt gives the batches with encrypted values. A batch is sent on whole or not at all.
func (p *producing) encrypt(ctx context.Context, topic string, data []byte) ([]byte, error) {
	most := len(data) + p.room
	var out []byte
	for len(data) > 0 {
		batch, rest, err := recordbatch.Next(data)
		switch {
		case err != nil:
			return nil, err
		case batch.Raw() == nil:
			return nil, recordbatch.ErrCorrupt
		case batch.Control():
			return nil, errControl
		}
		before := len(out)
		if out, err = p.batch(ctx, topic, out, batch); err != nil {
			return nil, err
		}
		if len(out) > most { // whatever the batches behind it decompress to
			return nil, errRequest
		}
		if err := p.memory.take(ctx, 2*(len(out)-before)); err != nil { // here, and in the request
			return nil, err
		}
		data = rest
	}
	return out, nil
}

func (p *producing) batch(ctx context.Context, topic string, dst []byte, batch recordbatch.Batch) ([]byte, error) {
	records, err := p.memory.decompressed(ctx, batch)
	if err != nil {
		return nil, err
	}
	defer p.memory.giveDecompressed(batch, records)
	if err := p.checkSizes(records, batch.Count()); err != nil {
		return nil, err
	}
	size := min(len(records)+int(batch.Count())*(encryptor.Overhead+4), recordbatch.MaxDecompressed)
	if err := p.memory.take(ctx, 2*size); err != nil { // the other one is what it is compressed to; with a key, nothing waits
		return nil, err
	}
	defer p.memory.give(2 * size)
	w, err := p.enc.Writer(ctx, topic, int(batch.Count()), p.options.BindKey(topic))
	if err != nil {
		return nil, err
	}
	if w.Mode == keyclient.Clear {
		return append(dst, batch.Raw()...), checkClear(w, records, batch.Count())
	}
	values, err := encryptAll(w, records, batch.Count(), size)
	if err != nil {
		return nil, err
	}
	dst, err = batch.Append(dst, values, batch.Count(), batch.LastOffsetDelta())
	if err == nil {
		p.numbers.encrypted.Add(float64(w.Done()))
	}
	return dst, err
}

// encryptAll gives so many records with encrypted values.
func encryptAll(w *encryptor.Writer, records []byte, count int32, size int) ([]byte, error) {
	values := make([]byte, 0, size)
	for r, err := range recordbatch.All(records, count) {
		if err != nil {
			return nil, err
		}
		if r.Value == nil { // [CL-ENV-040]
			values = r.Append(values)
			continue
		}
		values = r.AppendHead(values, len(r.Value)+encryptor.Overhead)
		if values, err = w.Append(values, r.Value, r.Key); err != nil {
			return nil, err
		}
		if values = r.AppendTail(values); len(values) > recordbatch.MaxDecompressed {
			return nil, recordbatch.ErrTooLarge
		}
	}
	return values, nil
}

// checkSizes goes over the records before a key is asked for [CL-ENV-042].
func (h *Handler) checkSizes(records []byte, count int32) error {
	for r, err := range recordbatch.All(records, count) {
		if err != nil {
			return err
		}
		if len(r.Value) > h.options.MaxPlaintext {
			return refusal.New(encryptor.PlaintextTooLong, "a value of %d bytes; at most %d are taken", len(r.Value), h.options.MaxPlaintext)
		}
	}
	return nil
}

// checkClear refuses what readers would take for envelopes [CL-ENV-041].
func checkClear(w *encryptor.Writer, records []byte, count int32) error {
	for r, err := range recordbatch.All(records, count) {
		if err := errors.Join(err, w.Check(r.Value)); err != nil {
			return err
		}
	}
	return nil
}
