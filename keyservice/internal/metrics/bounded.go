// Labels whose values callers bring along: a policy may let any topic be a scope, and each value costs memory here and in Prometheus.

package metrics

import "sync"

const (
	// maxScopes are shown by name. Those that come later are one.
	maxScopes = 1000
	others    = "(others)" // no scope: a scope has no parentheses
)

type bounded struct {
	limit int
	mu    sync.RWMutex
	known map[string]bool
}

func newBounded(limit int) *bounded { return &bounded{limit: limit, known: map[string]bool{}} }

// label gives value itself, or others when there are too many.
func (b *bounded) label(value string) string {
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
