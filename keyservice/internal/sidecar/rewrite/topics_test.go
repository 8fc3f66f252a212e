package rewrite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func idOf(n int) (id [16]byte) {
	binary.BigEndian.PutUint32(id[:], uint32(n)+1)
	return id
}

func listed(from, to int) *kmsg.MetadataResponse {
	r := kmsg.NewPtrMetadataResponse()
	for n := from; n < to; n++ {
		topic, name := kmsg.NewMetadataResponseTopic(), fmt.Sprint("topic-", n)
		topic.Topic, topic.TopicID = &name, idOf(n)
		r.Topics = append(r.Topics, topic)
	}
	return r
}

// Names are remembered up to a bound; over it all are learned anew, and what is missing then is asked for again.
func TestNamesOfTopicsAreBounded(t *testing.T) {
	asked := 0
	topics := NewTopics(func(_ context.Context, ids [][16]byte) (*kmsg.MetadataResponse, error) {
		asked++
		if len(ids) != 1 {
			return nil, errors.New("what is known is asked for")
		}
		return listed(0, 1), nil
	})
	topics.learn(listed(0, maxTopics))
	if name, ok := topics.Name(idOf(maxTopics - 1)); !ok || name != fmt.Sprint("topic-", maxTopics-1) || asked != 0 {
		t.Fatal(name, ok, asked)
	}
	topics.learn(listed(maxTopics, maxTopics+1))
	if _, ok := topics.Name(idOf(0)); ok || len(topics.names) != 1 {
		t.Fatalf("%d names are remembered", len(topics.names))
	}
	for range 2 {
		names, err := topics.Resolve(t.Context(), [][16]byte{idOf(0), idOf(maxTopics), {}})
		if err != nil || len(names) != 2 || names[idOf(0)] != "topic-0" || asked != 1 {
			t.Fatal(names, err, asked)
		}
	}
}

// Ids of nobody, and topics that the broker answers with an error, have no name.
func TestIdsOfNobody(t *testing.T) {
	answer := listed(1, 2)
	answer.Topics[0].ErrorCode = 100
	topics := NewTopics(func(context.Context, [][16]byte) (*kmsg.MetadataResponse, error) { return answer, nil })
	if names, err := topics.Resolve(t.Context(), [][16]byte{idOf(1)}); err != nil || len(names) != 0 {
		t.Fatal(names, err)
	}
}
