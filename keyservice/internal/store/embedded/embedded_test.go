package embedded

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

func newPaths(t *testing.T) Paths {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	return Paths{Keys: filepath.Join(dir, "keys.db"), KEK: filepath.Join(dir, "kek.json")}
}

func initialised(t *testing.T) Paths {
	t.Helper()
	paths := newPaths(t)
	if err := Init(paths); err != nil {
		t.Fatal(err)
	}
	return paths
}

func open(t *testing.T, paths Paths) *Store {
	t.Helper()
	s, err := Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func base64Of(t *testing.T, s *Store, r store.Record) string {
	t.Helper()
	keys, err := s.Unwrap(t.Context(), []store.Record{r})
	if err != nil {
		t.Fatal(err)
	}
	return string(keys[0].AppendBase64(nil))
}

func current(t *testing.T, s *Store, scope string) store.Record {
	t.Helper()
	r, err := s.Current(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCurrentAndRotate(t *testing.T) {
	s := open(t, initialised(t))
	first := current(t, s, "claims")
	if again := current(t, s, "claims"); again.ID != first.ID {
		t.Fatal("the current key changed by itself")
	}
	if other := current(t, s, "other"); other.ID == first.ID {
		t.Fatal("two scopes share a key")
	}
	second, err := s.Rotate(t.Context(), "claims")
	if err != nil || second.ID == first.ID || current(t, s, "claims").ID != second.ID {
		t.Fatal("not rotated", err)
	}
	found, err := s.Lookup(t.Context(), "claims", []datakey.ID{first.ID, second.ID, {1}})
	if err != nil || len(found) != 2 || found[first.ID].Scope != "claims" || found[second.ID].Scope != "claims" {
		t.Fatal(found, err)
	}
	all, err := s.Currents(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
}

// [CL-API-011]
func TestOneFirstKeyForManyCallers(t *testing.T) {
	s := open(t, initialised(t))
	const callers = 500
	start, ids := make(chan struct{}), make(chan datakey.ID, callers)
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			<-start
			r, err := s.Current(context.Background(), "claims")
			if err != nil {
				t.Error(err)
			}
			ids <- r.ID
		})
	}
	close(start)
	wait.Wait()
	close(ids)
	want := <-ids
	for id := range ids {
		if id != want {
			t.Fatal("two current keys")
		}
	}
	err := s.db.View(func(tx *bbolt.Tx) error {
		if n := tx.Bucket(keysBucket).Stats().KeyN; n != 1 {
			t.Errorf("%d keys were stored", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// [CL-API-017]
func TestKeysLastAndWritesAreSynced(t *testing.T) {
	paths := initialised(t)
	s := open(t, paths)
	if s.db.NoSync || s.db.NoGrowSync {
		t.Fatal("writes are not synced")
	}
	r := current(t, s, "claims")
	want := base64Of(t, s, r)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, paths)
	if got := current(t, s, "claims"); got.ID != r.ID || base64Of(t, s, got) != want {
		t.Fatal("another key after opening again")
	}
}

// [CL-API-010] [CL-API-014]
func TestNoKeyIsOnDiskInTheClear(t *testing.T) {
	paths := initialised(t)
	s := open(t, paths)
	var forms [][]byte
	for i := range 50 {
		text := base64Of(t, s, current(t, s, fmt.Sprint("scope-", i)))
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		forms = append(forms, raw, []byte(text), []byte(hex.EncodeToString(raw)))
	}
	for _, path := range []string{paths.Keys, paths.KEK} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range forms {
			if bytes.Contains(content, form) {
				t.Fatalf("%s holds a data key", path)
			}
		}
	}
}

// [CL-API-010] [CL-POL-006]
func TestARecordCannotPassAsAnother(t *testing.T) {
	s := open(t, initialised(t))
	a, b := current(t, s, "a"), current(t, s, "b")
	for name, change := range map[string]func(r *store.Record){
		"scope": func(r *store.Record) { r.Scope = "b" },
		"id":    func(r *store.Record) { r.ID = b.ID },
		"time":  func(r *store.Record) { r.Created = r.Created.Add(1e6) },
		"key":   func(r *store.Record) { r.Wrapped = b.Wrapped },
	} {
		r := a
		change(&r)
		if keys, err := s.Unwrap(t.Context(), []store.Record{b, r}); err == nil || keys != nil {
			t.Errorf("another %s: unwrapped", name)
		}
	}
}

func TestEndedContext(t *testing.T) {
	s := open(t, initialised(t))
	r := current(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, currentErr := s.Current(ctx, "new")
	_, rotateErr := s.Rotate(ctx, "a")
	_, lookupErr := s.Lookup(ctx, "claims", []datakey.ID{r.ID})
	_, unwrapErr := s.Unwrap(ctx, []store.Record{r})
	for _, err := range []error{currentErr, rotateErr, lookupErr, unwrapErr, s.Check(ctx)} {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if current(t, s, "a").ID != r.ID {
		t.Error("rotated after all")
	}
}

func TestCheck(t *testing.T) {
	s := open(t, initialised(t))
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil {
		t.Fatal("a closed store is healthy")
	}
}
