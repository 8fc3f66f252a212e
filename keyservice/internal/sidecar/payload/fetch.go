// Fetching: values are decrypted on their way to the client. A partition is delivered up to the first record that must not pass.

package payload

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/recordbatch"
)

// fetchOffsets is kept with an exchange: where the client reads each partition from.
type fetchOffsets struct{}

type place struct {
	topic     string
	id        [16]byte
	partition int32
}

// finalEpoch asks for an answer without a fetch session.
const finalEpoch = -1

// fetch notes where the client reads from, and keeps the broker from opening a fetch session: in one, a request does not say of
// every partition where it is read from. Clients go on without when they are not given one.
func (h *Handler) fetch(x *flow.Exchange, request *kmsg.FetchRequest) error {
	if request.SessionID != 0 {
		x.Answer(&kmsg.FetchResponse{ErrorCode: kerr.FetchSessionIDNotFound.Code})
		return nil
	}
	offsets := map[place]int64{}
	for i := range request.Topics {
		topic := &request.Topics[i]
		for _, p := range topic.Partitions {
			offsets[placeOf(x, topic.Topic, topic.TopicID, p.Partition)] = p.FetchOffset
		}
	}
	x.Keep(fetchOffsets{}, offsets)
	request.SessionEpoch = finalEpoch
	x.ChangeRequest()
	return nil
}

// placeOf leaves out what the version does not carry.
func placeOf(x *flow.Exchange, topic string, id [16]byte, partition int32) place {
	if x.Version >= 13 {
		return place{id: id, partition: partition}
	}
	return place{topic: topic, partition: partition}
}

// fetching is one response.
type fetching struct {
	*Handler

	exchange *flow.Exchange
	offsets  map[place]int64
	memory   *share
	room     int // bytes for what is delivered
}

func (h *Handler) fetched(ctx context.Context, x *flow.Exchange, response *kmsg.FetchResponse) error {
	offsets, ok := x.Kept(fetchOffsets{}).(map[place]int64)
	if !ok { // answered here
		return nil
	}
	memory, err := h.responses.share(ctx, toFetch(x, response))
	if err != nil {
		return err
	}
	x.Hold(memory.end)
	names := h.fetchedNames(ctx, x, response)
	x.ChangeResponse()
	f := fetching{h, x, offsets, memory, maxDelivered}
	for i := range response.Topics {
		topic := &response.Topics[i]
		name := topic.Topic
		if x.Version >= 13 {
			name = names[topic.TopicID]
		}
		if err := f.topic(ctx, name, topic); err != nil {
			return err
		}
	}
	memory.settle()
	return nil
}

// toFetch is how much memory a response is expected to take: there are two of all records when it is made, and two of a batch while that is. Where
// records were compressed they were encrypted before, as a rule, and are no longer than that.
func toFetch(x *flow.Exchange, response *kmsg.FetchResponse) int {
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			if recordbatch.AnyCompressed(response.Topics[i].Partitions[j].RecordBatches) {
				return leastShare + 16*x.ResponseSize
			}
		}
	}
	return leastShare + 3*x.ResponseSize
}

// fetchedNames asks for the names of those topics only that have records.
func (h *Handler) fetchedNames(ctx context.Context, x *flow.Exchange, response *kmsg.FetchResponse) map[[16]byte]string {
	if x.Version < 13 {
		return nil
	}
	var ids [][16]byte
	for i := range response.Topics {
		if hasRecords(&response.Topics[i]) {
			ids = append(ids, response.Topics[i].TopicID)
		}
	}
	return h.resolve(ctx, x, ids)
}

func hasRecords(topic *kmsg.FetchResponseTopic) bool {
	for i := range topic.Partitions {
		if len(topic.Partitions[i].RecordBatches) > 0 {
			return true
		}
	}
	return false
}

// topic asks for the keys of all partitions together [CL-KEY-010].
func (f *fetching) topic(ctx context.Context, name string, topic *kmsg.FetchResponseTopic) error {
	parts := make([]*partition, len(topic.Partitions))
	need := needed{kids: map[datakey.ID]struct{}{}}
	defer func() { f.memory.give(need.held) }()
	for i := range topic.Partitions {
		p := &topic.Partitions[i]
		from, asked := f.offsets[placeOf(f.exchange, topic.Topic, topic.TopicID, p.Partition)]
		if len(p.RecordBatches) > 0 && !asked {
			return fmt.Errorf("the broker answered about partition %d of a topic that was not asked for", p.Partition)
		}
		if name == "" && len(p.RecordBatches) > 0 { // of which topic the records are is not known, so neither is whose they are
			p.ErrorCode, p.RecordBatches = kerr.UnknownTopicID.Code, []byte{}
		}
		parts[i] = f.takeApart(ctx, p.RecordBatches, from, &need)
	}
	return f.deliverAll(ctx, name, topic, parts, &need)
}

// deliverAll lets go the keys before it waits for memory, as their leases may end meanwhile.
func (f *fetching) deliverAll(ctx context.Context, name string, topic *kmsg.FetchResponseTopic, parts []*partition, need *needed) error {
	for done := 0; ; {
		done += f.deliverSome(ctx, name, topic.Partitions[done:], parts[done:], need)
		if done == len(parts) {
			return nil
		}
		if err := f.memory.outgrow(ctx); err != nil {
			return err
		}
	}
}

// deliverSome tells of how many partitions what may pass was delivered: of all for which there is memory.
func (f *fetching) deliverSome(ctx context.Context, name string, to []kmsg.FetchResponseTopicPartition, parts []*partition, need *needed) int {
	readable := &keys.Readable{}
	if len(need.kids) > 0 || need.plain {
		readable = f.cache.Decryption(ctx, name, need.list(), need.plain)
		defer readable.Wipe()
	}
	for i, part := range parts {
		if !f.deliver(ctx, name, &to[i], part, readable) {
			return i
		}
	}
	return len(parts)
}

// deliver puts what may pass in place of what the broker gave, or an error where that is nothing. Without memory it does nothing and gives false.
func (f *fetching) deliver(ctx context.Context, topic string, p *kmsg.FetchResponseTopicPartition, part *partition, readable *keys.Readable) bool {
	if len(p.RecordBatches) == 0 {
		return true
	}
	r := f.reader(readable)
	out, err := r.read(part)
	if errors.Is(err, errNoRoom) {
		r.undo()
		return false
	}
	r.tell()
	if err != nil && !errors.Is(err, errFull) {
		f.failed(ctx, f.exchange, "fetching", topic, p.Partition, err)
		if r.delivered == 0 {
			p.ErrorCode, out = whileFetching(err).Code, []byte{}
		}
	}
	p.RecordBatches = out
	return true
}
