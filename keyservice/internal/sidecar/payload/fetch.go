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

func (h *Handler) fetched(ctx context.Context, x *flow.Exchange, response *kmsg.FetchResponse) error {
	offsets, ok := x.Kept(fetchOffsets{}).(map[place]int64)
	if !ok { // answered here
		return nil
	}
	names := h.fetchedNames(ctx, x, response)
	x.ChangeResponse()
	room := maxDelivered
	for i := range response.Topics {
		topic := &response.Topics[i]
		name := topic.Topic
		if x.Version >= 13 {
			name = names[topic.TopicID]
		}
		if err := h.decryptTopic(ctx, x, name, topic, offsets, &room); err != nil {
			return err
		}
	}
	return nil
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

// decryptTopic asks for the keys of all partitions together [CL-KEY-010].
func (h *Handler) decryptTopic(ctx context.Context, x *flow.Exchange, name string, topic *kmsg.FetchResponseTopic, offsets map[place]int64, room *int) error {
	parts := make([]*partition, len(topic.Partitions))
	need := needed{kids: map[datakey.ID]struct{}{}}
	for i := range topic.Partitions {
		p := &topic.Partitions[i]
		from, asked := offsets[placeOf(x, topic.Topic, topic.TopicID, p.Partition)]
		if len(p.RecordBatches) > 0 && !asked {
			return fmt.Errorf("the broker answered about partition %d of a topic that was not asked for", p.Partition)
		}
		if name == "" && len(p.RecordBatches) > 0 { // of which topic the records are is not known, so neither is whose they are
			p.ErrorCode, p.RecordBatches = kerr.UnknownTopicID.Code, []byte{}
		}
		parts[i] = takeApart(p.RecordBatches, from, &need)
	}
	readable := &keys.Readable{}
	if len(need.kids) > 0 || need.plain {
		readable = h.cache.Decryption(ctx, name, need.list(), need.plain)
		defer readable.Wipe()
	}
	for i, part := range parts {
		h.deliver(ctx, x, name, &topic.Partitions[i], part, h.reader(readable, room))
	}
	return nil
}

// deliver puts what may pass in place of what the broker gave, or an error where that is nothing.
func (h *Handler) deliver(ctx context.Context, x *flow.Exchange, topic string, p *kmsg.FetchResponseTopicPartition, part *partition, r *reader) {
	if len(p.RecordBatches) == 0 {
		return
	}
	out, err := r.read(part)
	if err != nil && !errors.Is(err, errFull) {
		h.failed(ctx, x, "fetching", topic, p.Partition, err)
		if r.delivered == 0 {
			p.ErrorCode, out = whileFetching(err).Code, []byte{}
		}
	}
	p.RecordBatches = out
}
