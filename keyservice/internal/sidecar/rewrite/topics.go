// Names of topics by their ids.

package rewrite

import (
	"context"
	"maps"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

// maxTopics bounds what is remembered; more, and all is learned anew. An id is never given to another topic, so nothing gets stale.
const maxTopics = 100_000

// Topics learns the names of topics from Metadata, and asks the cluster for those that it does not know. It is safe for concurrent
// use; make it with NewTopics.
type Topics struct {
	ask func(ctx context.Context, ids [][16]byte) (*kmsg.MetadataResponse, error)

	mu    sync.RWMutex
	names map[[16]byte]string
}

// NewTopics makes one; ask sends a Metadata request for the ids to the cluster.
func NewTopics(ask func(context.Context, [][16]byte) (*kmsg.MetadataResponse, error)) *Topics {
	return &Topics{ask: ask, names: map[[16]byte]string{}}
}

// Name implements flow.Topics.
func (t *Topics) Name(id [16]byte) (string, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	name, ok := t.names[id]
	return name, ok
}

// Resolve implements flow.Topics.
func (t *Topics) Resolve(ctx context.Context, ids [][16]byte) (map[[16]byte]string, error) {
	found, missing := t.known(ids)
	if len(missing) == 0 {
		return found, nil
	}
	r, err := t.ask(ctx, missing)
	if err != nil {
		return nil, err
	}
	t.learn(r)
	more, _ := t.known(missing)
	maps.Copy(found, more)
	return found, nil
}

func (t *Topics) known(ids [][16]byte) (found map[[16]byte]string, missing [][16]byte) {
	found = make(map[[16]byte]string, len(ids))
	for _, id := range ids {
		if name, ok := t.Name(id); ok {
			found[id] = name
		} else if id != [16]byte{} {
			missing = append(missing, id)
		}
	}
	return found, missing
}

func (t *Topics) learn(r *kmsg.MetadataResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.names)+len(r.Topics) > maxTopics {
		t.names = map[[16]byte]string{}
	}
	for i := range r.Topics {
		topic := &r.Topics[i]
		if topic.ErrorCode == 0 && topic.Topic != nil && topic.TopicID != [16]byte{} {
			t.names[topic.TopicID] = *topic.Topic
		}
	}
}

// Wants implements flow.Handler.
func (*Topics) Wants(key, version int16) flow.Want {
	if key == int16(kmsg.Metadata) && version >= 10 {
		return flow.Want{Response: flow.Body}
	}
	return flow.Want{}
}

// Request implements flow.Handler.
func (*Topics) Request(context.Context, *flow.Exchange) error { return nil }

// Response implements flow.Handler.
func (t *Topics) Response(_ context.Context, x *flow.Exchange) error {
	if r, ok := x.Response.(*kmsg.MetadataResponse); ok && !x.Answered() {
		t.learn(r)
	}
	return nil
}
