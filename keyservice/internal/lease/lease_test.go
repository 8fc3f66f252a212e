package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded/embeddedtest"
)

func names(principal, scope, action string) Names { return Names{principal, scope, action} }

// No two of these have the same id: lengths stand before the names.
func TestIDs(t *testing.T) {
	seen := map[string]Names{}
	for _, n := range []Names{
		{},
		names("a", "", ""), names("", "a", ""), names("", "", "a"), names("ab", "", ""), names("a", "b", ""), names("a", "", "b"),
		names("", "ab", ""), names("", "a", "b"), names("a", "b", "encrypt"), names("a", "be", "ncrypt"),
	} {
		if twin, used := seen[n.ID()]; used || len(n.ID()) != 32 {
			t.Errorf("%+v and %+v: %s", n, twin, n.ID())
		}
		seen[n.ID()] = n
	}
}

func all(Names) bool { return true }

func TestRegistry(t *testing.T) {
	r, now := NewRegistry(100), time.Now()
	r.Grant(names("p", "s", "encrypt"), now, time.Minute)
	r.Grant(names("p", "s", "encrypt"), now.Add(30*time.Second), time.Minute)
	r.Grant(names("q", "s", "decrypt"), now, time.Second)
	leases, complete := r.List(now.Add(31*time.Second), all)
	if len(leases) != 1 || !complete || r.Count(now.Add(31*time.Second)) != 1 {
		t.Fatal(leases)
	}
	l := leases[0]
	if l.Renewals != 1 || !l.Granted.Equal(now) || !l.Renewed.Equal(now.Add(30*time.Second)) || !l.Expires.Equal(now.Add(90*time.Second)) {
		t.Errorf("%+v", l)
	}
	r.Grant(names("p", "s", "encrypt"), now.Add(time.Hour), time.Minute)
	if leases, _ = r.List(now.Add(time.Hour), all); leases[0].Renewals != 0 || !leases[0].Granted.Equal(now.Add(time.Hour)) {
		t.Errorf("a lease that ended went on: %+v", leases[0])
	}
	if leases, _ = r.List(now.Add(time.Hour), func(n Names) bool { return n.Principal == "q" }); len(leases) != 0 {
		t.Error(leases)
	}
}

// [CL-OPR-012] However many there are, no more than the limit are remembered, and the list says that some are missing.
func TestRegistryIsBounded(t *testing.T) {
	const limit = 160
	r, now := NewRegistry(limit), time.Now()
	for i := range 10 * limit {
		r.Grant(names(fmt.Sprint("p-", i), "s", "encrypt"), now, time.Duration(i+1)*time.Second)
		if n := len(r.all); n > limit {
			t.Fatal(n, "are remembered")
		}
	}
	leases, complete := r.List(now, all)
	if complete || len(leases) < limit*3/4 {
		t.Error(len(leases), complete)
	}
	for _, l := range leases {
		if l.Expires.Before(now.Add(9 * limit * time.Second)) {
			t.Fatal("one that ends soon was kept in place of a later one", l)
		}
	}
	if _, complete := r.List(now.Add(11*limit*time.Second), all); !complete {
		t.Error("not complete although all have ended")
	}
	for i := range 10 * limit { // what has ended makes room
		r.Grant(names(fmt.Sprint("q-", i), "s", "encrypt"), now.Add(time.Duration(20*limit+i)*time.Second), time.Second)
	}
	if _, complete := r.List(now.Add(40*limit*time.Second), all); !complete {
		t.Error("forgot leases although there was room")
	}
}

func TestPage(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e"}
	self := func(s string) string { return s }
	for _, c := range []struct {
		after string
		limit int
		page  string
		next  string
	}{
		{"", 2, "ab", "b"}, {"b", 2, "cd", "d"}, {"d", 2, "e", ""}, {"e", 2, "", ""}, {"bb", 1, "c", "c"}, {"z", 9, "", ""}, {"", 5, "abcde", ""},
	} {
		page, next := Page(ids, self, c.after, c.limit)
		if strings.Join(page, "") != c.page || next != c.next {
			t.Errorf("%q %d: %v %q", c.after, c.limit, page, next)
		}
	}
}

// broken is a real store whose reading of documents can be made to fail or to give something else.
type broken struct {
	store.Store

	mu      sync.Mutex
	err     error
	data    string
	forgets int
}

func (b *broken) set(err error, data string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.data = err, data
}

func (b *broken) ReadDocument(ctx context.Context, kind, key string) ([]byte, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
		return nil, 0, b.err
	case b.data != "":
		return []byte(b.data), 99, nil
	default:
		return b.Store.ReadDocument(ctx, kind, key)
	}
}

func (b *broken) Forget() { b.forgets++ }

func opened(t *testing.T) *broken {
	t.Helper()
	return &broken{Store: embeddedtest.New(t)}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func revoke(t *testing.T, r *Revocations, n Names) Revocation {
	t.Helper()
	revoked, err := r.Revoke(t.Context(), Revocation{Names: n, Created: time.Now(), By: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	return revoked
}

// [CL-OPR-003] What each revocation covers, on the replica that took it and on another once that has looked.
func TestCovers(t *testing.T) {
	s := opened(t)
	here, there := Open(t.Context(), s, quiet()), Open(t.Context(), s, quiet())
	asked := []Names{
		names("p", "", ""), names("p", "s", "encrypt"), names("p", "s", "decrypt"), names("p", "other", "encrypt"),
		names("q", "s", "encrypt"), names("q", "", ""), names("", "", ""), names("s", "p", "encrypt"),
	}
	for _, c := range []struct {
		revoked Names
		covers  []int
	}{
		{names("p", "", ""), []int{0, 1, 2, 3}},
		{names("", "s", ""), []int{1, 2, 4}},
		{names("p", "s", ""), []int{1, 2}},
		{names("p", "s", "encrypt"), []int{1}},
		{names("x", "y", ""), nil},
	} {
		added := revoke(t, here, c.revoked)
		there.Refresh(t.Context())
		for i, n := range asked {
			for _, r := range []*Revocations{here, there} {
				if err := r.Check(n); slices.Contains(c.covers, i) != errors.Is(err, ErrRevoked) {
					t.Errorf("%+v revoked: %+v: %v", c.revoked, n, err)
				}
			}
		}
		if removed, err := there.Unrevoke(t.Context(), added.ID()); err != nil || removed.Names != c.revoked {
			t.Fatal(removed, err)
		}
		here.Refresh(t.Context())
		if here.Check(asked[1]) != nil || there.Check(asked[1]) != nil {
			t.Error("taken back, and still in force")
		}
		if _, err := here.Unrevoke(t.Context(), added.ID()); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
	}
}

// [CL-OPR-004] Nothing is answered when the revocations were never read, or are not what this version writes.
func TestStale(t *testing.T) {
	s := opened(t)
	for name, fault := range map[string]func(){
		"unavailable":    func() { s.set(store.ErrUnavailable, "") },
		"no JSON":        func() { s.set(nil, "{") },
		"unknown member": func() { s.set(nil, `{"generation":1,"revocations":[],"exceptions":[]}`) },
		"wrong type":     func() { s.set(nil, `{"generation":1,"revocations":{}}`) },
	} {
		fault()
		r := Open(t.Context(), s, quiet())
		if err := r.Check(names("p", "", "")); !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
		s.set(nil, "")
		r.Refresh(t.Context())
		if err := r.Check(names("p", "", "")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := Open(t.Context(), s, quiet())
	revoke(t, r, names("p", "", ""))
	s.set(store.ErrUnavailable, "")
	r.Refresh(t.Context())
	if err := r.Check(names("p", "", "")); !errors.Is(err, ErrRevoked) {
		t.Error("forgotten because of a failure:", err)
	}
	read := *r.current.Load()
	for _, back := range []time.Duration{MaxAge + time.Second, time.Hour} {
		old := read
		old.asked = time.Now().Add(-back)
		r.current.Store(&old)
		if err := r.Check(names("q", "", "")); !errors.Is(err, ErrStale) {
			t.Errorf("read %s ago: %v", back, err)
		}
	}
	if _, err := r.Revoke(t.Context(), Revocation{Names: names("q", "", "")}); err == nil {
		t.Error("revoked without a store")
	}
}

// A store that went back to an older list, or lost it, does not take a revocation back.
func TestListGone(t *testing.T) {
	s := opened(t)
	r := Open(t.Context(), s, quiet())
	revoke(t, r, names("p", "", ""))
	empty := opened(t)
	r.store = empty
	asked := r.current.Load().asked
	r.Refresh(t.Context())
	if err := r.Check(names("p", "", "")); !errors.Is(err, ErrRevoked) || r.current.Load().asked != asked {
		t.Error("the revocation is gone with its document, or counts as read:", err)
	}
}

// [CL-OPR-012] There is room for so many revocations, and for so much text, and no more.
func TestRevocationsAreBounded(t *testing.T) {
	r := Open(t.Context(), opened(t), quiet())
	fill := list{}
	for i := range MaxRevocations {
		fill.Revocations = append(fill.Revocations, Revocation{Names: names(fmt.Sprint("p-", i), "", ""), By: "o"})
	}
	if err := r.change(t.Context(), func(l *list) error { *l = fill; return l.checkSize() }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Revoke(t.Context(), Revocation{Names: names("more", "", "")}); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	if again := revoke(t, r, names("p-7", "", "")); again.By != "o" {
		t.Error("what is there was changed", again)
	}
	if r.Count() != MaxRevocations || r.Check(names("more", "", "")) != nil {
		t.Error("a refused revocation is in force")
	}
	long := list{Revocations: []Revocation{{Names: names(strings.Repeat("x", maxSize+1), "", "")}}}
	if err := long.checkSize(); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

// Everybody forgets once after each destruction, and not for a revocation.
func TestForgetEverywhere(t *testing.T) {
	s, other := opened(t), &broken{}
	here := Open(t.Context(), s, quiet())
	other.Store = s
	there := Open(t.Context(), other, quiet())
	revoke(t, here, names("p", "", ""))
	there.Refresh(t.Context())
	if s.forgets != 0 || other.forgets != 0 {
		t.Fatal("forgot for nothing")
	}
	if err := here.ForgetEverywhere(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		there.Refresh(t.Context())
		here.Refresh(t.Context())
	}
	if s.forgets != 1 || other.forgets != 1 || here.Check(names("p", "", "")) == nil {
		t.Error(s.forgets, other.forgets)
	}
}
