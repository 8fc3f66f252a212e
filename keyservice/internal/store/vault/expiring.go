// A cache that forgets: bounded in time and in number.

package vault

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// expiring keeps values for ttl at most, and at most max of them: the oldest goes first. What goes is dropped, while
// no caller uses it. Safe for concurrent use.
type expiring[K comparable, V any] struct {
	ttl  time.Duration
	max  int
	drop func(V)

	hits, misses atomic.Uint64

	mu    sync.Mutex
	floor time.Time  // what was asked for before is not taken any more
	order *list.List // of *entry, oldest first
	at    map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	since time.Time
}

func newExpiring[K comparable, V any](ttl time.Duration, limit int, drop func(V)) *expiring[K, V] {
	return &expiring[K, V]{ttl: ttl, max: limit, drop: drop, order: list.New(), at: map[K]*list.Element{}}
}

// with calls use with a value that is still good, and tells whether there was one. use must not keep it.
func (c *expiring[K, V]) with(key K, use func(value V, since time.Time)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[key]
	if !ok {
		c.misses.Add(1)
		return false
	}
	found := entryOf[K, V](e)
	if time.Since(found.since) >= c.ttl {
		c.misses.Add(1)
		c.remove(e)
		return false
	}
	c.hits.Add(1)
	use(found.value, found.since)
	return true
}

// put takes a value over. since is when it was asked for, not when it came.
func (c *expiring[K, V]) put(key K, value V, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[key]; ok {
		c.remove(e)
	}
	if time.Since(since) >= c.ttl || since.Before(c.floor) {
		c.drop(value)
		return
	}
	c.at[key] = c.order.PushBack(&entry[K, V]{key, value, since})
	for c.order.Len() > c.max {
		c.remove(c.order.Front())
	}
}

// counts tells how often a value was found, how often not, and how many are held.
func (c *expiring[K, V]) counts() (hits, misses uint64, held int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits.Load(), c.misses.Load(), c.order.Len()
}

// sweep drops what is too old.
func (c *expiring[K, V]) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if time.Since(entryOf[K, V](e).since) >= c.ttl {
			c.remove(e)
		}
		e = next
	}
}

// clear drops everything, and what is still on its way.
func (c *expiring[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.floor = time.Now()
	for c.order.Len() > 0 {
		c.remove(c.order.Front())
	}
}

func (c *expiring[K, V]) remove(e *list.Element) {
	found := entryOf[K, V](e)
	c.order.Remove(e)
	delete(c.at, found.key)
	c.drop(found.value)
}

func entryOf[K comparable, V any](e *list.Element) *entry[K, V] {
	found, ok := e.Value.(*entry[K, V])
	if !ok {
		panic("the list holds entries only")
	}
	return found
}
