// What one connection does: counted for the audit log, the metrics and the live view.

package access

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/process"
)

// maxUses bounds the rights that are counted apart on one connection; what comes later counts as one.
const maxUses = 10_000

// use is what went through under one right.
type use struct {
	requests, records, bytes int64
	last                     time.Time
}

// trail is what a connection has done.
type trail struct {
	id      string
	subject Subject
	process *process.Process
	remote  string
	started time.Time
	ends    time.Time // of the client's certificate; zero: it showed none
	topics  flow.Topics
	metrics *Metrics

	mu     sync.Mutex
	client string
	uses   map[Check]*use
}

// named notes what the client calls itself.
func (t *trail) named(client *string) {
	if client == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.client = *client
}

// isNew gives those of the rights that are used for the first time here.
func (t *trail) isNew(checks []Check) (fresh []Check) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range checks {
		if t.uses[c] == nil && len(t.uses) < maxUses {
			fresh = append(fresh, c)
		}
	}
	return fresh
}

// used counts a request under each of the rights.
func (t *trail) used(checks []Check, key int16) {
	now := time.Now()
	t.mu.Lock()
	for _, c := range checks {
		u := t.at(c)
		u.requests++
		u.last = now
	}
	t.mu.Unlock()
	t.metrics.requested(t.subject.Principal, key, checks)
}

func (t *trail) at(c Check) *use {
	u := t.uses[c]
	if u == nil {
		if len(t.uses) >= maxUses {
			c = Check{}
		}
		if u = t.uses[c]; u == nil {
			u = &use{}
			t.uses[c] = u
		}
	}
	return u
}

// moved counts records under a right.
func (t *trail) moved(action policy.Action, topic string, id topicID, batches []byte) {
	if topic == "" {
		topic, _ = t.topics.Name(id)
	}
	records, bytes := countRecords(batches), int64(len(batches))
	t.mu.Lock()
	u := t.at(Check{action, topic})
	u.records += records
	u.bytes += bytes
	t.mu.Unlock()
	t.metrics.moved(t.subject.Principal, action, topic, records, bytes)
}

// sent counts the records that a request takes to the broker.
func (t *trail) sent(r kmsg.Request) {
	q, ok := r.(*kmsg.ProduceRequest)
	if !ok {
		return
	}
	for i := range q.Topics {
		for j := range q.Topics[i].Partitions {
			t.moved(policy.ActionWrite, q.Topics[i].Topic, q.Topics[i].TopicID, q.Topics[i].Partitions[j].Records)
		}
	}
}

// received counts the records that an answer brings.
func (t *trail) received(r kmsg.Response) {
	switch r := r.(type) {
	case *kmsg.FetchResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				if batches := r.Topics[i].Partitions[j].RecordBatches; len(batches) > 0 {
					t.moved(policy.ActionRead, r.Topics[i].Topic, r.Topics[i].TopicID, batches)
				}
			}
		}
	case *kmsg.ShareFetchResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				if batches := r.Topics[i].Partitions[j].Records; len(batches) > 0 {
					t.moved(policy.ActionRead, "", r.Topics[i].TopicID, batches)
				}
			}
		}
	}
}

// Places in the head of a record batch, in bytes (Kafka's documentation, "Message format").
const (
	lengthAt  = 8
	afterSize = 12
	flagsAt   = 22 // the second byte of the attributes
	countAt   = 57
	headSize  = 61

	control = 0x20 // a marker of a transaction
)

// countRecords adds up what batches say of themselves; they are not looked into. A batch that was cut off is not counted.
func countRecords(batches []byte) (records int64) {
	for len(batches) >= headSize {
		size := int64(int32(binary.BigEndian.Uint32(batches[lengthAt:]))) + afterSize // #nosec G115 -- as Kafka reads it
		if size < headSize || size > int64(len(batches)) {
			break
		}
		if batches[flagsAt]&control == 0 {
			records += max(0, int64(int32(binary.BigEndian.Uint32(batches[countAt:])))) // #nosec G115 -- as Kafka reads it
		}
		batches = batches[size:]
	}
	return records
}
