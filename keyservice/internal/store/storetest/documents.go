// What must hold of documents and of KEKs.

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

func read(t *testing.T, s store.Store, key string) (data string, version int) {
	t.Helper()
	document, version, err := s.ReadDocument(t.Context(), "test", key)
	if err != nil {
		t.Fatal(err)
	}
	return string(document), version
}

func testDocuments(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	s := open()
	if data, version := read(t, s, "one"); data != "" || version != 0 {
		t.Fatal("a document that was never written", data, version)
	}
	keys := []string{"one", "..two", "a..b", strings.Repeat("x", 249), "data"}
	for i, key := range keys {
		if err := s.WriteDocument(t.Context(), "test", key, 0, []byte(strconv.Itoa(i))); err != nil {
			t.Fatal(key, err)
		}
	}
	if err := s.WriteDocument(t.Context(), "other", "one", 0, []byte(`{"of": "another kind"}`)); err != nil {
		t.Fatal(err)
	}
	for _, version := range []int{0, 2, 7} {
		if err := s.WriteDocument(t.Context(), "test", "one", version, []byte("9")); !errors.Is(err, store.ErrConflict) {
			t.Fatal("written over another version", version, err)
		}
	}
	if err := s.WriteDocument(t.Context(), "test", "one", 1, []byte("[1]")); err != nil {
		t.Fatal(err)
	}
	large := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), store.MaxDocument-2)...), '"')
	if err := s.WriteDocument(t.Context(), "test", "large", 0, large); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteDocument(t.Context(), "test", "large", 1, append(large, ' ')); err == nil || errors.Is(err, store.ErrConflict) {
		t.Fatal("more than the limit was taken", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	for i, key := range keys[1:] {
		if data, version := read(t, s, key); data != strconv.Itoa(i+1) || version != 1 {
			t.Error(key, data, version)
		}
	}
	if data, version := read(t, s, "one"); data != "[1]" || version != 2 {
		t.Error(data, version)
	}
	if data, _ := read(t, s, "large"); data != string(large) {
		t.Error("the large one changed")
	}
}

// Nobody's write is lost when many, on several replicas, count in the same document.
func testConcurrentDocuments(t *testing.T, b Backend) {
	t.Helper()
	stores := replicas(t, b)
	const each = 10
	var wait sync.WaitGroup
	for i := range 3 {
		wait.Go(func() {
			ctx, s := context.WithoutCancel(t.Context()), stores[i%len(stores)]
			for added := 0; added < each; {
				data, version, err := s.ReadDocument(ctx, "test", "count")
				if err != nil {
					t.Error(err)
					return
				}
				count, _ := strconv.Atoi(string(data))
				err = s.WriteDocument(ctx, "test", "count", version, []byte(strconv.Itoa(count+1)))
				switch {
				case err == nil:
					added++
				case !errors.Is(err, store.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	if data, version := read(t, stores[0], "count"); data != strconv.Itoa(3*each) || version != 3*each {
		t.Error("counted", data, "in version", version)
	}
}

// rewrap makes a new version of every KEK and rewraps, and tells how many keys were.
func rewrap(ctx context.Context, t *testing.T, s store.Store, advance int) (keys int, err error) {
	t.Helper()
	names, err := s.KEKNames(t.Context())
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		version, err := s.KEKVersion(t.Context(), name)
		if err != nil || version < 1 {
			t.Fatal(version, err)
		}
		if err := s.AdvanceKEK(t.Context(), name, version+advance); err != nil {
			t.Fatal(err)
		}
		if now, err := s.KEKVersion(t.Context(), name); err != nil || now != version+advance {
			t.Fatal(now, err)
		}
		if err := s.Rewrap(ctx, name, func(n int) { keys += n }); err != nil {
			return keys, err
		}
	}
	return keys, nil
}

// keysOf makes keys in two scopes and gives their records by their text.
func keysOf(t *testing.T, s store.Store) map[string]store.Record {
	t.Helper()
	all := map[string]store.Record{}
	for i := range 8 {
		r := rotate(t, s, fmt.Sprint("scope-", i%2))
		all[text(t, s, r)] = r
	}
	return all
}

// rewrapped counts the keys that are wrapped otherwise than before, and sees that each is what it was.
func rewrapped(t *testing.T, s store.Store, before map[string]store.Record) (count int) {
	t.Helper()
	for want, was := range before {
		found, err := s.Lookup(t.Context(), was.Scope, []datakey.ID{was.ID})
		r := found[was.ID]
		if err != nil || text(t, s, r) != want || text(t, s, was) != want || !r.Created.Equal(was.Created) {
			t.Fatal("a key changed or is gone", err)
		}
		if !bytes.Equal(r.Wrapped, was.Wrapped) {
			count++
		}
	}
	return count
}

// [CL-OPR-011] Rewrapping wraps every key anew, once, and changes nothing else.
func testRewrap(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	s := open()
	before := keysOf(t, s)
	gone := current(t, s, "scope-0")
	_ = rotate(t, s, "scope-0")
	destroy(t, s, "scope-0", gone.ID)
	for want, r := range before {
		if r.ID == gone.ID {
			delete(before, want)
		}
	}
	if err := s.WriteDocument(t.Context(), "test", "one", 0, []byte(`{"kept": true}`)); err != nil {
		t.Fatal(err)
	}
	if keys, err := rewrap(t.Context(), t, s, 1); err != nil || keys != len(before)+1 {
		t.Fatal(keys, err)
	}
	if keys, err := rewrap(t.Context(), t, s, 0); err != nil || keys != 0 {
		t.Fatal("rewrapped again", keys, err)
	}
	made := rotate(t, s, "scope-1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if n := rewrapped(t, s, before); n != len(before) {
		t.Errorf("%d of %d are wrapped anew", n, len(before))
	}
	isGone(t, s, gone)
	if data, version := read(t, s, "one"); !strings.Contains(data, "kept") || version != 1 {
		t.Error("the document changed", data, version)
	}
	if current(t, s, "scope-1").ID != made.ID || text(t, s, made) == "" || text(t, s, current(t, s, "scope-0")) == "" {
		t.Error("not current any more")
	}
	if keys, err := rewrap(t.Context(), t, s, 2); err != nil || keys != len(before)+2 {
		t.Fatal(keys, err)
	}
}

// [CL-OPR-011] Interrupted between making a version and the end, every key can be read, and the next attempt ends it.
func testRewrapInterrupted(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	before := keysOf(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rewrap(ctx, t, s, 1); err == nil {
		t.Fatal("went on after its end")
	}
	if n := rewrapped(t, s, before); n == len(before) {
		t.Fatal("was not interrupted")
	}
	if _, err := rewrap(t.Context(), t, s, 0); err != nil {
		t.Fatal(err)
	}
	if b.Replicas { // the KEK of the other scope got no new version yet
		if _, err := rewrap(t.Context(), t, s, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := rewrapped(t, s, before); n != len(before) {
		t.Errorf("%d of %d are wrapped anew", n, len(before))
	}
}
