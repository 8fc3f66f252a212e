// The leases that this replica gave: in memory, bounded, for the operator's list only.

package lease

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxLeases is how many leases are remembered; when there are more, those that end first are forgotten.
const MaxLeases = 20_000

// Lease is one that was given and has not ended.
type Lease struct {
	Names

	Granted  time.Time // first, without a gap since
	Renewed  time.Time // last
	Expires  time.Time
	Renewals int64
}

// Registry remembers leases. Safe for concurrent use.
type Registry struct {
	mu       sync.Mutex
	limit    int
	all      map[Names]*Lease
	overflow time.Time // up to when a lease that was forgotten may last
}

// NewRegistry makes an empty one that remembers up to limit leases.
func NewRegistry(limit int) *Registry {
	return &Registry{limit: limit, all: map[Names]*Lease{}}
}

// Grant notes that a lease was given or renewed, from now on for a time.
func (r *Registry) Grant(names Names, now time.Time, expiresIn time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.all[names]; l != nil && l.Expires.After(now) {
		l.Renewed, l.Expires = now, now.Add(expiresIn)
		l.Renewals++
		return
	}
	r.all[names] = &Lease{Names: names, Granted: now, Renewed: now, Expires: now.Add(expiresIn)}
	if len(r.all) > r.limit {
		r.shrink(now)
	}
}

// shrink forgets what has ended and, if that is not enough, a sixteenth of the rest.
func (r *Registry) shrink(now time.Time) {
	r.sweep(now)
	if len(r.all) <= r.limit {
		return
	}
	rest := r.sorted(func(a, b *Lease) int { return a.Expires.Compare(b.Expires) })
	for _, l := range rest[:len(rest)-r.limit+r.limit/16] {
		delete(r.all, l.Names)
		if l.Expires.After(r.overflow) {
			r.overflow = l.Expires
		}
	}
}

func (r *Registry) sweep(now time.Time) {
	for names, l := range r.all {
		if !l.Expires.After(now) {
			delete(r.all, names)
		}
	}
}

func (r *Registry) sorted(by func(a, b *Lease) int) []*Lease {
	rest := make([]*Lease, 0, len(r.all))
	for _, l := range r.all {
		rest = append(rest, l)
	}
	slices.SortFunc(rest, by)
	return rest
}

// List gives the leases that have not ended and that wanted wants, by their ids; complete is false when some may have
// been forgotten.
func (r *Registry) List(now time.Time, wanted func(Names) bool) (leases []Lease, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	ids := make(map[Names]string, len(r.all))
	for names := range r.all {
		if wanted(names) {
			ids[names] = names.ID()
			leases = append(leases, *r.all[names])
		}
	}
	slices.SortFunc(leases, func(a, b Lease) int { return strings.Compare(ids[a.Names], ids[b.Names]) })
	return leases, !r.overflow.After(now)
}

// Count tells how many leases have not ended.
func (r *Registry) Count(now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	return len(r.all)
}

// Page gives the entries behind an id, at most limit, and the id to go on from: empty at the end. The entries are in
// the order of their ids.
func Page[T any](all []T, id func(T) string, after string, limit int) (page []T, next string) {
	at, found := slices.BinarySearchFunc(all, after, func(one T, id2 string) int { return cmp.Compare(id(one), id2) })
	if found {
		at++
	}
	page = all[at:min(at+limit, len(all))]
	if at+limit < len(all) {
		next = id(page[len(page)-1])
	}
	return page, next
}
