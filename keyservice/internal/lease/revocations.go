// What is revoked: one document in the store, which every replica reads each second.

package lease

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/document"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// Limits (spec/limits.md).
const (
	Interval       = time.Second      // between two looks at the store
	MaxAge         = 10 * time.Second // what was read longer ago is not believed
	MaxRevocations = 1000
	MaxReason      = 256       // bytes
	maxSize        = 256 << 10 // bytes of names and reasons together
	readTimeout    = 5 * time.Second
	documentKind   = "service"
	documentKey    = "revocations"
)

var (
	// ErrStale says that the revocations could not be read for MaxAge.
	ErrStale = errors.New("the revocations could not be read")
	// ErrRevoked says that something is revoked.
	ErrRevoked = errors.New("revoked")
	// ErrFull says that there is no room for another revocation.
	ErrFull = errors.New("there are too many revocations")
	// ErrNone says that there is no such revocation.
	ErrNone = errors.New("no such revocation")
)

// Revocation is one, as it is kept.
type Revocation struct {
	Names

	Created time.Time `json:"created"`
	By      string    `json:"by"`
	Reason  string    `json:"reason,omitzero"`
}

// list is the document. Generation grows when keys were destroyed, so that replicas forget what they hold.
type list struct {
	Generation  int64        `json:"generation"`
	Revocations []Revocation `json:"revocations"`
}

// snapshot is what was read, and never changes.
type snapshot struct {
	version int
	list    list
	names   map[Names]bool
	asked   time.Time
}

// Revocations answers whether something is revoked. Safe for concurrent use.
type Revocations struct {
	store   store.Store
	log     *slog.Logger
	current atomic.Pointer[snapshot]
	setting sync.Mutex
	failing atomic.Bool
}

// Open reads the revocations for the first time. When that fails, nothing is answered until Run could read them.
func Open(ctx context.Context, s store.Store, log *slog.Logger) *Revocations {
	r := &Revocations{store: s, log: log}
	r.current.Store(&snapshot{})
	r.Refresh(ctx)
	return r
}

// Run reads them again and again until ctx ends.
func (r *Revocations) Run(ctx context.Context) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.Refresh(ctx)
		}
	}
}

// Refresh reads them now. Failures are logged when they begin and when they end.
func (r *Revocations) Refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	asked := time.Now()
	read, version, err := document.Read[list](ctx, r.store, documentKind, documentKey)
	if err != nil {
		if !r.failing.Swap(true) {
			r.log.Warn("the revocations cannot be read; calls are refused soon", "error", err, "after", MaxAge.String())
		}
		return
	}
	if r.failing.Swap(false) {
		r.log.Info("the revocations can be read again")
	}
	r.set(read, version, asked)
}

// set takes a list over, unless a newer one is known.
func (r *Revocations) set(l list, version int, asked time.Time) {
	r.setting.Lock()
	defer r.setting.Unlock()
	last := r.current.Load()
	if version < last.version {
		return
	}
	names := make(map[Names]bool, len(l.Revocations))
	for _, one := range l.Revocations {
		names[one.Names] = true
	}
	r.current.Store(&snapshot{version, l, names, asked})
	if l.Generation != last.list.Generation {
		r.store.Forget()
	}
}

// Age tells how long ago the revocations were read; ok is false when they never were. The longer of what the two clocks
// say counts: one stands still while the machine is suspended, the other can be set.
func (r *Revocations) Age() (age time.Duration, ok bool) {
	asked := r.current.Load().asked
	now := time.Now()
	return max(now.Sub(asked), now.Round(0).Sub(asked.Round(0))), !asked.IsZero()
}

// Check gives nil when none of the names is revoked, else ErrRevoked; ErrStale when that is not known [CL-OPR-004].
func (r *Revocations) Check(n Names) error {
	if age, ok := r.Age(); !ok || age > MaxAge {
		return ErrStale
	}
	revoked := r.current.Load().names
	for _, one := range n.coveredBy() {
		if one != (Names{}) && revoked[one] {
			return ErrRevoked
		}
	}
	return nil
}

// Count tells how many revocations there are.
func (r *Revocations) Count() int { return len(r.current.Load().list.Revocations) }

// List reads all revocations from the store, in the order of their ids.
func (r *Revocations) List(ctx context.Context) ([]Revocation, error) {
	l, _, err := document.Read[list](ctx, r.store, documentKind, documentKey)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.Revocations, func(a, b Revocation) int { return strings.Compare(a.ID(), b.ID()) })
	return l.Revocations, nil
}

// Revoke adds a revocation, which holds here when it returns. What is revoked already stays as it was and is given.
func (r *Revocations) Revoke(ctx context.Context, add Revocation) (Revocation, error) {
	add.Created = add.Created.UTC().Truncate(time.Millisecond)
	err := r.change(ctx, func(l *list) error {
		if at := l.indexOf(add.ID()); at >= 0 {
			add = l.Revocations[at]
			return document.Unchanged
		}
		l.Revocations = append(l.Revocations, add)
		return l.checkSize()
	})
	return add, err
}

// Unrevoke takes a revocation back and gives it, or ErrNone.
func (r *Revocations) Unrevoke(ctx context.Context, id string) (removed Revocation, err error) {
	err = r.change(ctx, func(l *list) error {
		at := l.indexOf(id)
		if at < 0 {
			return ErrNone
		}
		removed = l.Revocations[at]
		l.Revocations = slices.Delete(l.Revocations, at, at+1)
		return nil
	})
	return removed, err
}

// ForgetEverywhere lets every replica drop what it holds in memory, as soon as it looks at the revocations.
func (r *Revocations) ForgetEverywhere(ctx context.Context) error {
	return r.change(ctx, func(l *list) error {
		l.Generation++
		return nil
	})
}

func (r *Revocations) change(ctx context.Context, change func(*list) error) error {
	asked := time.Now()
	l, version, err := document.Update(ctx, r.store, documentKind, documentKey, change)
	if err == nil {
		r.set(l, version, asked)
	}
	return err
}

func (l *list) indexOf(id string) int {
	return slices.IndexFunc(l.Revocations, func(one Revocation) bool { return one.ID() == id })
}

func (l *list) checkSize() error {
	size := 0
	for _, one := range l.Revocations {
		size += len(one.Principal) + len(one.Scope) + len(one.By) + len(one.Reason)
	}
	if len(l.Revocations) > MaxRevocations || size > maxSize {
		return ErrFull
	}
	return nil
}
