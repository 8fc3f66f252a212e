// What must hold with many callers and many replicas.

package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// replicas opens as many stores as the backend allows, up to three.
func replicas(t *testing.T, b Backend) []store.Store {
	t.Helper()
	open := b.New(t)
	all := []store.Store{open()}
	if b.Replicas {
		all = append(all, open(), open())
	}
	return all
}

// [CL-API-011] One first key, also when many ask at once on several replicas.
func testFirstKey(t *testing.T, b Backend) {
	t.Helper()
	stores := replicas(t, b)
	const callers, scopes = 30, 3
	var mu sync.Mutex
	ids := map[string]map[datakey.ID]bool{"scope-0": {}, "scope-1": {}, "scope-2": {}}
	var wait sync.WaitGroup
	start := make(chan struct{})
	for i := range callers * scopes {
		wait.Go(func() {
			<-start
			scope := fmt.Sprint("scope-", i%scopes)
			r, err := stores[i/scopes%len(stores)].Current(context.WithoutCancel(t.Context()), scope)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids[scope][r.ID] = true
		})
	}
	close(start)
	wait.Wait()
	for scope, different := range ids {
		if len(different) != 1 {
			t.Errorf("%s has %d first keys", scope, len(different))
		}
	}
}

// Every rotation's key is there afterwards, and the last one is current.
func testConcurrentRotations(t *testing.T, b Backend) {
	t.Helper()
	stores := replicas(t, b)
	const each = 5
	ids := make(chan datakey.ID, each*len(stores))
	var wait sync.WaitGroup
	for _, s := range stores {
		wait.Go(func() {
			for range each {
				r, err := s.Rotate(context.WithoutCancel(t.Context()), "claims")
				if err != nil {
					t.Error(err)
					return
				}
				ids <- r.ID
			}
		})
	}
	wait.Wait()
	close(ids)
	different := map[datakey.ID]bool{}
	for id := range ids {
		different[id] = true
	}
	if len(different) != each*len(stores) {
		t.Fatalf("%d keys of %d rotations", len(different), each*len(stores))
	}
	time.Sleep(b.Staleness)
	last := current(t, stores[0], "claims").ID
	for _, s := range stores {
		found, err := s.Lookup(t.Context(), "claims", slices.Collect(maps.Keys(different)))
		if err != nil || len(found) != len(different) {
			t.Fatal("a key is gone", err)
		}
		if id := current(t, s, "claims").ID; !different[id] || id != last {
			t.Error("replicas have different current keys")
		}
	}
}

// A key made by one replica is known to the other at once, and current there within the backend's staleness.
func testOtherReplica(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	one, two := open(), open()
	first := current(t, one, "claims")
	if current(t, two, "claims").ID != first.ID {
		t.Fatal("two current keys")
	}
	second := rotate(t, one, "claims")
	found, err := two.Lookup(t.Context(), "claims", []datakey.ID{second.ID})
	if err != nil || len(found) != 1 || text(t, two, found[second.ID]) != text(t, one, second) {
		t.Fatal("a key just made is not known to the other replica", err)
	}
	time.Sleep(b.Staleness)
	if current(t, two, "claims").ID != second.ID {
		t.Error("the other replica goes on with the old key")
	}
	if found, err := two.Lookup(t.Context(), "another", []datakey.ID{first.ID}); err != nil || found[first.ID].Scope != "claims" {
		t.Error("a moved record's key is not found", err)
	}
}
