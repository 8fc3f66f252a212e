// Labels whose values callers bring along: a policy may let any topic be a scope, and each value costs memory here and in Prometheus.

package metrics

import "sync"

const (
	// maxScopes are shown by name. Those that come later are one.
	maxScopes = 1000
	others    = "(others)" // no scope: a scope has no parentheses
)

// Bounded keeps the values of a label within a number. It is safe for concurrent use.
type Bounded struct {
	limit int
	mu    sync.RWMutex
	known map[string]bool
}

// NewBounded makes one that lets so many different values through.
func NewBounded(limit int) *Bounded { return &Bounded{limit: limit, known: map[string]bool{}} }

// Label gives value itself, or others when there are too many.
func (b *Bounded) Label(value string) string {
	b.mu.RLock()
	known := b.known[value]
	b.mu.RUnlock()
	if known {
		return value
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= b.limit && !b.known[value] {
		return others
	}
	b.known[value] = true
	return value
}
