// Package usage adds up what producers report as encrypted under each data key, over all replicas. Reports are gathered
// in memory and written to the store every Interval; a batch whose writing failed, or whose answer was lost, is written
// again under the same id, so that nothing counts twice [CL-OPR-007].
//
// The counts of a scope stand in sixteen documents, by the first digit of the kid.
package usage

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/document"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	// Interval is how long a report waits to be written, and how long what was read is believed.
	Interval = 2 * time.Second
	// Max is the largest count; more stays there.
	Max = 1<<53 - 1

	writeTimeout = 5 * time.Second
	closeTimeout = 1500 * time.Millisecond
	maxKeys      = 4_000 // in one document
	maxBatches   = 64    // ids of batches that a document remembers
)

// Counts are records and the bytes of their plaintext.
type Counts struct {
	Records int64 `json:"r"`
	Bytes   int64 `json:"b"`
}

// Plus adds, and stays at Max.
func (c Counts) Plus(d Counts) Counts {
	return Counts{min(c.Records, Max-d.Records) + d.Records, min(c.Bytes, Max-d.Bytes) + d.Bytes}
}

// counted is a document.
type counted struct {
	Keys    map[string]Counts `json:"keys"`
	Batches []string          `json:"batches"` // the last ones that were added
}

// place names a document.
type place struct{ kind, scope string }

func placeOf(scope string, id datakey.ID) place { return place{"usage-" + id.String()[:1], scope} }

// bucket is what waits to be written to a document.
type bucket struct {
	next    map[datakey.ID]Counts
	batch   map[datakey.ID]Counts // under way since a write that failed or goes on; nil: none
	batchID string
}

// known is what the store said about a key.
type known struct {
	counts Counts
	asked  time.Time
}

// Counter counts. Safe for concurrent use.
type Counter struct {
	store store.Documents
	log   *slog.Logger
	reads singleflight.Group

	writing sync.Mutex // one flush at a time
	mu      sync.Mutex
	buckets map[place]*bucket
	known   map[datakey.ID]known
}

// New makes a counter; Run lets it write.
func New(s store.Documents, log *slog.Logger) *Counter {
	return &Counter{store: s, log: log, buckets: map[place]*bucket{}, known: map[datakey.ID]known{}}
}

// Run writes what was reported until ctx ends, and then what is left.
func (c *Counter) Run(ctx context.Context) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.flush(ctx, writeTimeout)
		case <-ctx.Done():
			c.flush(context.WithoutCancel(ctx), closeTimeout)
			return
		}
	}
}

func (c *Counter) flush(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.Flush(ctx); err != nil {
		c.log.Warn("what was encrypted could not be written to the store; it is tried again", "error", err)
	}
}

// Report adds what was encrypted under a key of a scope. The caller has seen that it is one.
func (c *Counter) Report(scope string, id datakey.ID, add Counts) {
	if add == (Counts{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := placeOf(scope, id)
	b := c.buckets[at]
	if b == nil {
		b = &bucket{next: map[datakey.ID]Counts{}}
		c.buckets[at] = b
	}
	b.next[id] = b.next[id].Plus(add)
}

// Flush writes what waits. What could not be written waits on.
func (c *Counter) Flush(ctx context.Context) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	places := make([]place, 0, len(c.buckets))
	for at := range c.buckets {
		places = append(places, at)
	}
	c.forget()
	c.mu.Unlock()
	var failures []error
	for _, at := range places {
		again, err := c.write(ctx, at)
		if again && err == nil { // behind a batch that had failed before
			_, err = c.write(ctx, at)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// forget drops what the store said too long ago. The caller has the lock.
func (c *Counter) forget() {
	for id, k := range c.known {
		if time.Since(k.asked) > Interval {
			delete(c.known, id)
		}
	}
}

// write writes a batch, and tells whether it was an older one and more waits.
func (c *Counter) write(ctx context.Context, at place) (again bool, err error) {
	id, batch, older := c.begin(at)
	asked := time.Now()
	d, _, err := document.Update(ctx, c.store, at.kind, at.scope, func(d *counted) error { return d.add(id, batch) })
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for kid := range batch {
		c.known[kid] = known{d.Keys[kid.String()], asked}
	}
	b := c.buckets[at]
	b.batch = nil
	if len(b.next) == 0 {
		delete(c.buckets, at)
		return false, nil
	}
	return older, nil
}

// begin takes what waits as a batch, unless an older one is under way.
func (c *Counter) begin(at place) (id string, batch map[datakey.ID]Counts, older bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.buckets[at]
	if older = b.batch != nil; !older {
		b.batch, b.batchID, b.next = b.next, rand.Text(), map[datakey.ID]Counts{}
	}
	return b.batchID, b.batch, older
}

// add counts a batch, once.
func (d *counted) add(id string, batch map[datakey.ID]Counts) error {
	if slices.Contains(d.Batches, id) {
		return document.Unchanged
	}
	if d.Keys == nil {
		d.Keys = map[string]Counts{}
	}
	for kid, counts := range batch {
		d.Keys[kid.String()] = d.Keys[kid.String()].Plus(counts)
	}
	d.bound(batch)
	d.Batches = append(d.Batches, id)
	d.Batches = d.Batches[max(0, len(d.Batches)-maxBatches):]
	return nil
}

// bound forgets the counts of other keys when there are too many.
func (d *counted) bound(keep map[datakey.ID]Counts) {
	for text := range d.Keys {
		if len(d.Keys) <= maxKeys {
			return
		}
		if id, err := datakey.ParseID(text); err != nil || keep[id] == (Counts{}) {
			delete(d.Keys, text)
		}
	}
}

// Total gives what was encrypted under a key: what the store had at most Interval ago, and what waits here.
func (c *Counter) Total(ctx context.Context, scope string, id datakey.ID) (Counts, error) {
	total, ok := c.remembered(scope, id)
	if ok {
		return total, nil
	}
	at := placeOf(scope, id)
	_, err, _ := c.reads.Do(id.String(), func() (any, error) { // many ask about the same key at once
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		asked := time.Now()
		d, _, err := document.Read[counted](ctx, c.store, at.kind, at.scope)
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.known[id] = known{d.Keys[id.String()], asked}
		}
		return nil, err
	})
	if err != nil {
		return Counts{}, err
	}
	total, _ = c.remembered(scope, id)
	return total, nil
}

func (c *Counter) remembered(scope string, id datakey.ID) (total Counts, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.known[id]
	total = k.counts
	if b := c.buckets[placeOf(scope, id)]; b != nil {
		total = total.Plus(b.batch[id]).Plus(b.next[id])
	}
	return total, ok && time.Since(k.asked) <= Interval
}

// Of gives what was encrypted under each of some keys of a scope.
func (c *Counter) Of(ctx context.Context, scope string, ids []datakey.ID) (map[datakey.ID]Counts, error) {
	documents := map[place]counted{}
	all := make(map[datakey.ID]Counts, len(ids))
	for _, id := range ids {
		at := placeOf(scope, id)
		d, read := documents[at]
		if !read {
			var err error
			if d, _, err = document.Read[counted](ctx, c.store, at.kind, at.scope); err != nil {
				return nil, err
			}
			documents[at] = d
		}
		all[id] = d.Keys[id.String()].Plus(c.waiting(at, id))
	}
	return all, nil
}

func (c *Counter) waiting(at place, id datakey.ID) Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.buckets[at]
	if b == nil {
		return Counts{}
	}
	return b.batch[id].Plus(b.next[id])
}
