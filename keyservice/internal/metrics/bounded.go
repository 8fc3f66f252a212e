// Labels whose values callers bring along: a policy may let any topic be a scope, and each value costs memory here and in Prometheus.

package metrics

import "sync"

// maxScopes are shown by name. Those that come later are one.
const maxScopes = 1000

// Others are all values that are not shown apart: no principal, scope or topic has parentheses.
const Others = "(others)"

// Bounded is a set of so many different values as come first. It is safe for concurrent use.
type Bounded[T comparable] struct {
	limit int
	mu    sync.RWMutex
	known map[T]bool
}

// NewBounded makes one that takes so many.
func NewBounded[T comparable](limit int) *Bounded[T] {
	return &Bounded[T]{limit: limit, known: map[T]bool{}}
}

// Takes tells whether a value is one of them.
func (b *Bounded[T]) Takes(value T) bool {
	b.mu.RLock()
	known := b.known[value]
	b.mu.RUnlock()
	if known {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) < b.limit {
		b.known[value] = true
	}
	return b.known[value]
}

// Label gives the value itself if it is one of them, else Others.
func Label(b *Bounded[string], value string) string {
	if b.Takes(value) {
		return value
	}
	return Others
}
