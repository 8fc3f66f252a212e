// What the key service remembers of the reports: the last one of each sidecar, in memory, bounded.

package view

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// MaxSidecars are remembered (spec/limits.md).
	MaxSidecars = 500
	// Interval is how often a sidecar reports.
	Interval = 5 * time.Second
	// Forget is after how long a sidecar that reports no more is forgotten.
	Forget = 30 * time.Second
)

// Sidecar is the last report of one.
type Sidecar struct {
	Principal string  `json:"principal"`
	Age       float64 `json:"age"` // seconds since it came
	Report
}

// Registry remembers reports. Safe for concurrent use.
type Registry struct {
	mu  sync.Mutex
	all map[key]entry
}

type key struct{ principal, host string }

type entry struct {
	report Report
	came   time.Time
}

// NewRegistry makes an empty one.
func NewRegistry() *Registry { return &Registry{all: map[key]entry{}} }

// Take remembers a report of a principal in place of the one before. When there are too many, the oldest goes.
func (r *Registry) Take(principal string, report Report, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[key{principal, report.Host}] = entry{report, now}
	r.sweep(now)
	for len(r.all) > MaxSidecars {
		var oldest key
		for k, e := range r.all {
			if at, ok := r.all[oldest]; !ok || e.came.Before(at.came) {
				oldest = k
			}
		}
		delete(r.all, oldest)
	}
}

func (r *Registry) sweep(now time.Time) {
	for k, e := range r.all {
		if now.Sub(e.came) > Forget {
			delete(r.all, k)
		}
	}
}

// List gives the last report of each sidecar, by principal and host.
func (r *Registry) List(now time.Time) []Sidecar {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	all := make([]Sidecar, 0, len(r.all))
	for k, e := range r.all {
		all = append(all, Sidecar{k.principal, now.Sub(e.came).Seconds(), e.report})
	}
	slices.SortFunc(all, func(a, b Sidecar) int {
		return cmp.Or(cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Host, b.Host))
	})
	return all
}
