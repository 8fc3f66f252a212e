// Package keys holds data keys for the time of their leases (spec/key-service.md, "What an SDK does"): one request at a time for the
// same thing, renewal ahead of the end, wiping at the end. It knows nothing of HTTP, envelopes or Kafka.
package keys

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sys/unix"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Codes of spec/errors.md.
const (
	LeaseExpired refusal.Code = "lease-expired"
	Closed       refusal.Code = "closed"
)

const (
	jitter      = 0.2 // of the time between two requests after a failure, up and down
	sweepEvery  = time.Second
	callTimeout = 30 * time.Second // of a request to all addresses; callers give up sooner
	reportTime  = time.Second      // for what is reported at the end [CL-KEY-017]
)

// Service gives keys. *keyclient.Client is one.
type Service interface {
	EncryptionKey(ctx context.Context, topic string, usage *keyclient.Usage) (*keyclient.Grant, error)
	DecryptionKeys(ctx context.Context, topic string, kids []datakey.ID) (*keyclient.Readable, error)
}

// Options are settings of spec/configuration.md.
type Options struct {
	Deadline time.Duration // cipherlane.keys.deadline.ms
	Backoff  time.Duration // cipherlane.keys.retry.backoff.ms
	Max      int           // cipherlane.keys.cache.max, of topics and of data keys each
}

// Defaults are those of spec/configuration.md.
func Defaults() Options {
	return Options{Deadline: 10 * time.Second, Backoff: 500 * time.Millisecond, Max: 10_000}
}

type topicKid struct {
	topic string
	kid   datakey.ID
}

// Cache is safe for concurrent use.
type Cache struct {
	service Service
	options Options
	ended   func(datakey.ID) // told of each key that was wiped

	mu     sync.Mutex
	grants *simplelru.LRU[string, *entry[*keyclient.Grant]]
	plain  *simplelru.LRU[string, *entry[bool]] // whether a topic's plaintext is accepted
	held   *simplelru.LRU[topicKid, *entry[keyclient.Key]]
	usage  map[string]map[datakey.ID]*keyclient.Usage // by topic: not reported yet
	counts Counts
	stop   chan struct{}
	swept  sync.WaitGroup
}

// Counts are numbers of spec/kafka.md.
type Counts struct {
	Requests, Failures int64
	Cached             int           // data keys held now
	FirstEnd           time.Duration // until the first lease ends; 0 without one
}

// New makes a cache. ended, which may be nil, is told the kid of each key that is wiped; it must not call back.
func New(service Service, options Options, ended func(datakey.ID)) (*Cache, error) {
	if options.Max < 1 || options.Deadline <= 0 || options.Backoff <= 0 {
		return nil, refusal.New("configuration-invalid", "cache size, deadline and back-off of keys must be positive")
	}
	if ended == nil {
		ended = func(datakey.ID) {}
	}
	c := &Cache{service: service, options: options, ended: ended, usage: map[string]map[datakey.ID]*keyclient.Usage{}, stop: make(chan struct{})}
	var err [3]error
	c.grants, err[0] = simplelru.NewLRU(options.Max, func(_ string, e *entry[*keyclient.Grant]) { c.wipeGrant(e) })
	c.plain, err[1] = simplelru.NewLRU[string, *entry[bool]](options.Max, nil)
	c.held, err[2] = simplelru.NewLRU(options.Max, func(_ topicKid, e *entry[keyclient.Key]) { c.evict(e) })
	c.swept.Go(c.sweep)
	return c, errors.Join(err[:]...)
}

// Close wipes every key and reports what was encrypted since the last report, within a second.
func (c *Cache) Close() {
	close(c.stop)
	c.swept.Wait()
	c.mu.Lock()
	c.grants.Purge()
	c.held.Purge()
	usage := c.usage
	c.usage, c.options.Backoff = nil, time.Hour
	c.mu.Unlock()
	c.reportAll(usage)
}

func (c *Cache) wipeGrant(e *entry[*keyclient.Grant]) {
	if e.valid && e.value.Key != nil {
		e.value.Key.Wipe()
		c.ended(e.value.Kid)
	}
	e.valid = false
}

func (c *Cache) wipeKey(e *entry[keyclient.Key]) {
	if e.valid && e.value.Key != nil {
		e.value.Key.Wipe()
		c.ended(e.value.Kid)
	}
	e.valid = false
}

// evict wipes a key that left the cache, when the last who waits for it has taken it.
func (c *Cache) evict(e *entry[keyclient.Key]) {
	if e.evicted = true; e.waiters == 0 {
		c.wipeKey(e)
	}
}

// sweep wipes keys at the end of their leases, also those that nobody asks for any more [CL-KEY-005].
func (c *Cache) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		now := Now()
		removeEnded(c.grants, now)
		removeEnded(c.plain, now)
		removeEnded(c.held, now)
		c.mu.Unlock()
	}
}

func removeEnded[K comparable, T any](lru *simplelru.LRU[K, *entry[T]], now time.Duration) {
	for _, key := range lru.Keys() {
		if e, _ := lru.Peek(key); e.over(now) {
			lru.Remove(key)
		}
	}
}

// Counts gives the numbers as of now.
func (c *Cache) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, now, first := c.counts, Now(), time.Duration(0)
	see := func(valid bool, until time.Duration) {
		if left := until - now; valid && left > 0 && (first == 0 || left < first) {
			first = left
		}
	}
	for _, e := range c.grants.Values() {
		see(e.valid, e.until)
		if e.valid && e.value.Key != nil {
			n.Cached++
		}
	}
	for _, e := range c.held.Values() {
		see(e.valid, e.until)
		if e.valid {
			n.Cached++
		}
	}
	n.FirstEnd = first
	return n
}

// count notes a request and its outcome. The caller holds mu.
func (c *Cache) count(err error) {
	c.counts.Requests++
	if err != nil {
		c.counts.Failures++
	}
}

func (c *Cache) backoff() time.Duration {
	return time.Duration(float64(c.options.Backoff) * (1 - jitter + 2*jitter*rand.Float64())) // #nosec G404 -- not a secret
}

// Now gives the time of a clock that runs on through suspend and does not follow the wall clock [CL-KEY-005].
func Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("the system has no clock that runs on through suspend: " + err.Error())
	}
	return time.Duration(now.Nano())
}
