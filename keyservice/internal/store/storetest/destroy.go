// What must hold of replacing, listing and destroying keys.

package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

func replace(t *testing.T, s store.Store, scope string, old datakey.ID) store.Record {
	t.Helper()
	r, err := s.Replace(t.Context(), scope, old)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func testReplace(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	if _, err := s.Peek(t.Context(), "claims"); !errors.Is(err, store.ErrNoKey) {
		t.Fatal("looking made a key", err)
	}
	first := current(t, s, "claims")
	second := replace(t, s, "claims", first.ID)
	if second.ID == first.ID || current(t, s, "claims").ID != second.ID {
		t.Fatal("not replaced")
	}
	if r, err := s.Peek(t.Context(), "claims"); err != nil || r.ID != second.ID {
		t.Fatal(r.ID, err)
	}
	for _, old := range []datakey.ID{first.ID, {}, {1}} {
		if r := replace(t, s, "claims", old); r.ID != second.ID {
			t.Fatal("a key was replaced that was not the one to be replaced")
		}
	}
	if r := replace(t, s, "new", first.ID); r.Scope != "new" || current(t, s, "new").ID != r.ID {
		t.Fatal("a scope without a key did not get its first")
	}
}

// Of many that find the same key used up, on several replicas, one makes the next.
func testConcurrentReplace(t *testing.T, b Backend) {
	t.Helper()
	stores := replicas(t, b)
	old := current(t, stores[0], "claims")
	var mu sync.Mutex
	different := map[datakey.ID]bool{}
	var wait sync.WaitGroup
	for i := range 24 {
		wait.Go(func() {
			r, err := stores[i%len(stores)].Replace(context.WithoutCancel(t.Context()), "claims", old.ID)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			different[r.ID] = true
		})
	}
	wait.Wait()
	if len(different) != 1 || different[old.ID] {
		t.Errorf("%d keys in place of one", len(different))
	}
}

func list(t *testing.T, s store.Store, scope string, after datakey.ID, limit int) []store.Record {
	t.Helper()
	records, err := s.List(t.Context(), scope, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func ids(records []store.Record) []datakey.ID {
	all := make([]datakey.ID, len(records))
	for i, r := range records {
		all[i] = r.ID
	}
	return all
}

func testList(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	s := open()
	_ = current(t, s, "another")
	made := []store.Record{current(t, s, "claims")}
	for range 6 {
		time.Sleep(2 * time.Millisecond) // a key is made at a whole millisecond
		made = append(made, rotate(t, s, "claims"))
	}
	for _, limit := range []int{7, 1000} {
		if got := list(t, s, "claims", datakey.ID{}, limit); !slices.Equal(ids(got), ids(made)) {
			t.Fatal("not all keys in their order", ids(got))
		}
	}
	for after, want := range map[datakey.ID][]store.Record{{}: made[:2], made[1].ID: made[2:4], made[5].ID: made[6:], made[6].ID: nil} {
		if got := list(t, s, "claims", after, 2); !slices.Equal(ids(got), ids(want)) {
			t.Errorf("after %s: %v", after, ids(got))
		}
	}
	if got := list(t, s, "unheard-of", datakey.ID{}, 10); len(got) != 0 {
		t.Fatal(got)
	}
	for _, scope := range []string{"claims", "unheard-of"} {
		if _, err := s.List(t.Context(), scope, datakey.ID{1}, 10); !errors.Is(err, store.ErrNoKey) {
			t.Fatal(err)
		}
	}
	if _, err := s.List(t.Context(), "another", made[0].ID, 10); !errors.Is(err, store.ErrNoKey) {
		t.Fatal("went on behind a key of another scope", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := list(t, open(), "claims", made[3].ID, 2); !slices.Equal(ids(got), ids(made[4:6])) {
		t.Fatal("not the same after opening anew", ids(got))
	}
}

func destroy(t *testing.T, s store.Store, scope string, ids ...datakey.ID) {
	t.Helper()
	if err := s.Destroy(t.Context(), scope, ids); err != nil {
		t.Fatal(err)
	}
}

// isGone sees that a key cannot be had, and that its record says so.
func isGone(t *testing.T, s store.Store, was store.Record) {
	t.Helper()
	found, err := s.Lookup(t.Context(), was.Scope, []datakey.ID{was.ID})
	r := found[was.ID]
	if err != nil || !r.IsDestroyed() || len(r.Wrapped) != 0 || r.Scope != was.Scope || !r.Created.Equal(was.Created) {
		t.Fatal("not destroyed, or its record is gone", r, err)
	}
	if age := time.Since(r.Destroyed); age < -time.Second || age > time.Minute {
		t.Fatal("destroyed at", r.Destroyed)
	}
	if keys, err := s.Unwrap(t.Context(), []store.Record{r}); err == nil || keys != nil {
		t.Fatal("a destroyed key was unwrapped")
	}
}

// [CL-OPR-010] Destroyed keys are gone, for those who open the store later too; the others stay as they were.
func testDestroy(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	s := open()
	first, second := current(t, s, "claims"), rotate(t, s, "claims")
	third, fourth := rotate(t, s, "claims"), rotate(t, s, "claims")
	other := current(t, s, "other")
	_, want := text(t, s, first), text(t, s, third) // unwrapped, and so in memory
	destroy(t, s, "claims", first.ID, second.ID)
	destroy(t, s, "claims", second.ID) // again
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Holds != nil {
		if b.Holds(t, first.Wrapped) || b.Holds(t, second.Wrapped) {
			t.Error("the wrapped key is still there")
		}
		if !b.Holds(t, third.Wrapped) {
			t.Error("this test looks in the wrong place")
		}
	}
	s = open()
	isGone(t, s, first)
	isGone(t, s, second)
	if text(t, s, third) != want || current(t, s, "claims").ID != fourth.ID || text(t, s, fourth) == "" || text(t, s, other) == "" {
		t.Error("another key suffered")
	}
	for _, r := range list(t, s, "claims", datakey.ID{}, 10) {
		if r.IsDestroyed() != (r.ID == first.ID || r.ID == second.ID) {
			t.Error("the list does not say what is destroyed", r)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// [CL-OPR-009] What cannot be destroyed leaves everything as it was.
func testDestroyRefused(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	first, second, other := current(t, s, "claims"), rotate(t, s, "claims"), current(t, s, "other")
	for _, c := range []struct {
		scope string
		ids   []datakey.ID
		want  error
	}{
		{"claims", []datakey.ID{first.ID, second.ID}, store.ErrCurrent},
		{"claims", []datakey.ID{second.ID}, store.ErrCurrent},
		{"claims", []datakey.ID{first.ID, {1}}, store.ErrNoKey},
		{"claims", []datakey.ID{first.ID, other.ID}, store.ErrNoKey},
		{"other", []datakey.ID{first.ID}, store.ErrNoKey},
		{"unheard-of", []datakey.ID{first.ID}, store.ErrNoKey},
	} {
		if err := s.Destroy(t.Context(), c.scope, c.ids); !errors.Is(err, c.want) {
			t.Errorf("%s %v: %v", c.scope, c.ids, err)
		}
	}
	destroy(t, s, "claims")
	if text(t, s, first) == "" || text(t, s, second) == "" || text(t, s, other) == "" {
		t.Error("a key is gone")
	}
	found, err := s.Lookup(t.Context(), "claims", []datakey.ID{first.ID, second.ID, other.ID})
	if err != nil || found[first.ID].IsDestroyed() || found[second.ID].IsDestroyed() || found[other.ID].IsDestroyed() {
		t.Error(found, err)
	}
}

// A key destroyed through one replica is gone on another as soon as that forgets.
func testDestroyedElsewhere(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	one, two := open(), open()
	first := current(t, one, "claims")
	_ = rotate(t, one, "claims")
	if text(t, two, first) != text(t, one, first) {
		t.Fatal("two keys of one id")
	}
	if found, err := two.Lookup(t.Context(), "claims", []datakey.ID{first.ID}); err != nil || len(found) != 1 {
		t.Fatal(err)
	}
	destroy(t, one, "claims", first.ID)
	isGone(t, one, first)
	two.Forget()
	isGone(t, two, first)
	if r := rotate(t, two, "claims"); current(t, two, "claims").ID != r.ID {
		t.Error("not rotated after")
	}
}
