// Package gather keeps what happens again and again from filling a log: of each kind the first is told by itself, and those of a while after
// it are only counted.
package gather

import (
	"sync"
	"time"
)

// Gatherer is safe for concurrent use. Make it with New; a nil one gathers nothing.
type Gatherer[K comparable] struct {
	window time.Duration
	most   int

	mu    sync.Mutex
	kinds map[K]*repeats
	rest  repeats // of kinds beyond most
}

type repeats struct {
	since time.Time // of the first of the window; zero without one
	more  int       // after the first
}

// Counted is how many of a kind were not told by themselves.
type Counted[K comparable] struct {
	Kind  K // the zero value for kinds that are too many to be told apart
	Count int
}

// New makes one that tells so many kinds apart.
func New[K comparable](window time.Duration, most int) *Gatherer[K] {
	return &Gatherer[K]{window: window, most: most, kinds: map[K]*repeats{}}
}

// Add counts one and tells whether it is the first of a window, which is to be told by itself.
func (g *Gatherer[K]) Add(kind K, now time.Time) (first bool) {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.of(kind)
	if r.since.IsZero() {
		r.since = now
		return true
	}
	r.more++
	return false
}

func (g *Gatherer[K]) of(kind K) *repeats {
	if r := g.kinds[kind]; r != nil {
		return r
	}
	if len(g.kinds) >= g.most {
		return &g.rest
	}
	r := &repeats{}
	g.kinds[kind] = r
	return r
}

// Due gives what was counted in windows that are over, or in all of them, and ends these windows.
func (g *Gatherer[K]) Due(now time.Time, all bool) (due []Counted[K]) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	over := func(r repeats) bool { return !r.since.IsZero() && (all || now.Sub(r.since) >= g.window) }
	for kind, r := range g.kinds {
		if !over(*r) {
			continue
		}
		delete(g.kinds, kind)
		if r.more > 0 {
			due = append(due, Counted[K]{kind, r.more})
		}
	}
	if !over(g.rest) {
		return due
	}
	if g.rest.more > 0 {
		due = append(due, Counted[K]{Count: g.rest.more})
	}
	g.rest = repeats{}
	return due
}
