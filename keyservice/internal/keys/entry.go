// What is known of one thing: an answer and its lease, or why there is none, and the request that is under way.

package keys

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// final are the refusals that end a lease at once [CL-KEY-008].
var final = []refusal.Code{
	refusal.NotAuthorized, refusal.TopicUnknown, refusal.TopicForbidden, refusal.ScopeMismatch, refusal.KeyUnknown, refusal.KeyDestroyed,
	refusal.Unauthenticated,
}

// entry belongs to the cache's lock.
type entry[T any] struct {
	value          T
	valid          bool
	refresh, until time.Duration // of the lease, on clock
	err            error         // of the last attempt
	retry          time.Duration // not before, on clock
	flight         chan struct{} // closed when the request under way is done
	waiters        int           // who have not taken the value yet
	evicted        bool          // it left the cache
}

func (e *entry[T]) usable(now time.Duration) bool { return e.valid && now < e.until }

// due tells whether it is to be asked for now: it is not there or to be renewed, nobody asks, and no failure was a moment ago.
func (e *entry[T]) due(now time.Duration) bool {
	return e.flight == nil && now >= e.retry && (!e.usable(now) || now >= e.refresh)
}

// over tells whether nothing is lost with it.
func (e *entry[T]) over(now time.Duration) bool {
	return e.flight == nil && now >= e.retry && !e.usable(now)
}

// failure is why it is not usable [CL-KEY-007].
func (e *entry[T]) failure() error {
	if e.err != nil {
		return e.err
	}
	return refusal.New(LeaseExpired, "the lease ended and was not renewed")
}

func (e *entry[T]) succeed(value T, lease keyclient.Lease, asked time.Duration) {
	e.value, e.valid, e.err, e.retry = value, true, nil, 0
	e.refresh, e.until = asked+lease.Refresh, asked+lease.Expires
}

// fail keeps the lease, unless the refusal ends it; wipe lets its value go.
func (e *entry[T]) fail(err error, retry time.Duration, wipe func(*entry[T])) {
	e.err, e.retry = err, retry
	if r, ok := errors.AsType[*refusal.Error](err); ok && slices.Contains(final, r.Code) {
		wipe(e)
	}
}

func (e *entry[T]) land() {
	close(e.flight)
	e.flight = nil
}

// wait waits for a request under way, no longer than ctx.
func wait(ctx context.Context, flight <-chan struct{}) error {
	select {
	case <-flight:
		return nil
	case <-ctx.Done():
		return refusal.New(refusal.Unavailable, "the key service did not answer in time")
	}
}
