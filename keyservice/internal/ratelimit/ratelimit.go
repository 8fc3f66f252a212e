// Package ratelimit bounds how often a principal may call, and gathers what is refused for want of room, so that a caller that asks
// too often fills neither the service's time nor its audit disk [CL-AUD-007].
package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxPrincipals are remembered. Those beyond share one budget, until somebody has been quiet for long enough.
	maxPrincipals = 10_000
	// Window is how long refusals are gathered before a line of them is due.
	Window = 10 * time.Second
)

// Limiter is safe for concurrent use. A nil one allows everything and gathers nothing.
type Limiter struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex
	callers map[string]*caller
	unknown *caller   // all who are not known to be a principal
	rest    *caller   // principals beyond the bound
	looked  time.Time // for callers to forget
}

type caller struct {
	budget *rate.Limiter
	since  time.Time // of the first refusal of the window, zero without one
	more   int       // refusals after it
}

// Gathered are refusals of one principal that were not recorded one by one.
type Gathered struct {
	Principal string // empty for callers that were refused before it was known, or are too many
	Count     int
}

// New makes one that allows each principal so many calls a second, and so many at once.
func New(perSecond, burst int) *Limiter {
	l := &Limiter{perSecond: rate.Limit(perSecond), burst: burst, callers: map[string]*caller{}}
	l.unknown, l.rest = l.newCaller(), l.newCaller()
	return l
}

func (l *Limiter) newCaller() *caller { return &caller{budget: rate.NewLimiter(l.perSecond, l.burst)} }

// Take takes cost, at most the burst, from the principal's budget; that of the empty name is shared by all who are not known. When there is not enough it takes nothing and says how long to wait.
func (l *Limiter) Take(principal string, cost int, now time.Time) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(principal, now).budget.ReserveN(now, min(cost, l.burst))
	if wait = r.DelayFrom(now); wait == 0 {
		return 0, true
	}
	r.CancelAt(now)
	return wait, false
}

// Gather counts a refusal for want of room and tells whether it is to be recorded by itself: the first one of a window is.
func (l *Limiter) Gather(principal string, now time.Time) (record bool) {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.of(principal, now)
	if c.since.IsZero() {
		c.since = now
		return true
	}
	c.more++
	return false
}

// Due gives what was gathered in windows that are over, or in all, and begins new ones.
func (l *Limiter) Due(now time.Time, all bool) []Gathered {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []Gathered
	for principal, c := range l.callers {
		due = c.due(due, principal, now, all)
	}
	due = l.unknown.due(due, "", now, all)
	return l.rest.due(due, "", now, all)
}

func (c *caller) due(due []Gathered, principal string, now time.Time, all bool) []Gathered {
	if c.since.IsZero() || !all && now.Sub(c.since) < Window {
		return due
	}
	if c.more > 0 {
		due = append(due, Gathered{principal, c.more})
	}
	c.since, c.more = time.Time{}, 0
	return due
}

func (l *Limiter) of(principal string, now time.Time) *caller {
	if c := l.callers[principal]; c != nil {
		return c
	}
	switch {
	case principal == "":
		return l.unknown
	case len(l.callers) >= maxPrincipals && !l.forget(now):
		return l.rest
	}
	c := l.newCaller()
	l.callers[principal] = c
	return c
}

// forget drops callers whose budget is whole again and of whom nothing is gathered: they are as if they had never called.
// Looking costs time, so it is done once a second at most.
func (l *Limiter) forget(now time.Time) bool {
	if now.Sub(l.looked) < time.Second {
		return false
	}
	l.looked = now
	for principal, c := range l.callers {
		if c.since.IsZero() && c.budget.TokensAt(now) >= float64(l.burst) {
			delete(l.callers, principal)
		}
	}
	return len(l.callers) < maxPrincipals
}
