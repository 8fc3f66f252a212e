// Requests whose answers are still to come, in the order in which the client gets them.

package relay

import (
	"context"
	"sync"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// entry is a request; with a frame, it is answered already.
type entry struct {
	x     *flow.Exchange
	frame []byte
}

// queue also orders who writes to the client: while the first entry waits for the broker, only the goroutine that reads from the
// broker does; while the queue is empty, only the one that reads from the client.
type queue struct {
	mu      *sync.Mutex
	changed *sync.Cond
	entries []entry
	memory  []entry // that of entries, from its beginning
	limit   int
	held    int // bytes of the answers in entries
	closed  bool
	out     *wire.Writer
}

func newQueue(limit int, out *wire.Writer) queue {
	mu := &sync.Mutex{}
	return queue{mu: mu, changed: sync.NewCond(mu), limit: limit, out: out}
}

func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries) >= q.limit
}

// maxHeld is how many bytes of answers wait for their turn, unless a single one is longer.
const maxHeld = 1 << 20

// room tells whether an entry may be added.
func (q *queue) room(e entry) bool {
	return len(q.entries) < q.limit && (e.frame == nil || q.held == 0 || q.held+len(e.frame) <= maxHeld)
}

// push adds an entry, when there is room; an answer for which nothing waits goes out at once.
func (q *queue) push(ctx context.Context, e entry) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.room(e) && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return context.Cause(ctx)
	}
	if len(q.entries) > 0 || e.frame == nil {
		q.add(e)
		return nil
	}
	if err := q.out.Write(e.frame); err != nil {
		return err
	}
	return q.out.Flush()
}

// head gives the request that the broker answers next, or nil.
func (q *queue) head() *flow.Exchange {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) == 0 {
		return nil
	}
	return q.entries[0].x
}

// pop takes away the first entry, which has been delivered, and delivers the answers that waited for it.
func (q *queue) pop() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shift()
	for len(q.entries) > 0 && q.entries[0].frame != nil {
		if err := q.out.Write(q.entries[0].frame); err != nil {
			return err
		}
		q.shift()
	}
	q.changed.Broadcast()
	return nil
}

// keptEntries is how many the memory of an empty queue is for at most.
const keptEntries = 16

func (q *queue) shift() {
	q.held -= len(q.entries[0].frame)
	q.entries[0] = entry{}
	if q.entries = q.entries[1:]; len(q.entries) > 0 {
		return
	}
	if q.entries = q.memory[:0]; cap(q.memory) > keptEntries {
		q.entries, q.memory = nil, nil
	}
}

// add appends an entry, at the beginning of the memory again when its end has been reached and much of it is free.
func (q *queue) add(e entry) {
	if n := len(q.entries); n == cap(q.entries) {
		if 2*n > cap(q.memory) || n == 0 {
			q.memory = make([]entry, max(4, 2*n))
		}
		copy(q.memory[:n], q.entries)
		clear(q.memory[n:cap(q.memory)])
		q.entries = q.memory[:n]
	}
	q.entries = append(q.entries, e)
	q.held += len(e.frame)
}

// flush sends what was gathered for the client.
func (q *queue) flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.out.Flush()
}

// wait returns when the queue is empty and its answers are sent, or ctx has ended. While something is in the queue, who reads from the
// broker may be writing.
func (q *queue) wait(ctx context.Context) {
	defer context.AfterFunc(ctx, q.changed.Broadcast)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.entries) > 0 && !q.closed && ctx.Err() == nil {
		q.changed.Wait()
	}
	if len(q.entries) == 0 {
		_ = q.out.Flush()
	}
}

// close wakes all that wait.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
