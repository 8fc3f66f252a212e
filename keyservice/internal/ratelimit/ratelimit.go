// Package ratelimit bounds how often a principal may call, so that one that asks too often does not take the others' time.
package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxPrincipals are remembered. Those beyond share one budget, until somebody has been quiet for long enough.
const maxPrincipals = 10_000

// Limiter is safe for concurrent use. A nil one allows everything.
type Limiter struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex
	callers map[string]*rate.Limiter
	unknown *rate.Limiter // all who are not known to be a principal
	rest    *rate.Limiter // principals beyond the bound
	looked  time.Time     // for callers to forget
}

// New makes one that allows each principal so many calls a second, and so many at once.
func New(perSecond, burst int) *Limiter {
	l := &Limiter{perSecond: rate.Limit(perSecond), burst: burst, callers: map[string]*rate.Limiter{}}
	l.unknown, l.rest = l.newBudget(), l.newBudget()
	return l
}

func (l *Limiter) newBudget() *rate.Limiter { return rate.NewLimiter(l.perSecond, l.burst) }

// Take takes cost, at most the burst, from the principal's budget; that of the empty name is shared by all who are not known. When there is not enough it takes nothing and says how long to wait.
func (l *Limiter) Take(principal string, cost int, now time.Time) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(principal, now).ReserveN(now, min(cost, l.burst))
	if wait = r.DelayFrom(now); wait == 0 {
		return 0, true
	}
	r.CancelAt(now)
	return wait, false
}

func (l *Limiter) of(principal string, now time.Time) *rate.Limiter {
	if c := l.callers[principal]; c != nil {
		return c
	}
	switch {
	case principal == "":
		return l.unknown
	case len(l.callers) >= maxPrincipals && !l.forget(now):
		return l.rest
	}
	c := l.newBudget()
	l.callers[principal] = c
	return c
}

// forget drops callers whose budget is whole again: they are as if they had never called.
// Looking costs time, so it is done once a second at most.
func (l *Limiter) forget(now time.Time) bool {
	if now.Sub(l.looked) < time.Second {
		return false
	}
	l.looked = now
	for principal, c := range l.callers {
		if c.TokensAt(now) >= float64(l.burst) {
			delete(l.callers, principal)
		}
	}
	return len(l.callers) < maxPrincipals
}
