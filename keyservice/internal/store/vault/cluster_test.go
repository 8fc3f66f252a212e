package vault

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// A cluster whose leader is killed while two replicas rotate: the calls either succeed or say that the store is not
// available, it is available again by itself, and no key that was handed out is missing [CL-API-017].
func TestFailOver(t *testing.T) {
	t.Parallel()
	cluster := testvault.Raft(t)
	active := cluster.Active(t)
	o := newPlace(t, active)
	o.Addresses, o.Timeout = cluster.Addresses(), 3*time.Second
	initialise(t, o)
	stores := []*Store{open(t, o), open(t, o)}

	var handedOut sync.Map
	var count, unavailable atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for _, s := range stores {
		wait.Go(func() {
			for ctx.Err() == nil {
				r, err := s.Rotate(t.Context(), "claims")
				switch {
				case err == nil:
					handedOut.Store(r.ID, true)
					count.Add(1)
				case errors.Is(err, store.ErrUnavailable):
					unavailable.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	reach := func(more int32) time.Duration {
		began, want := time.Now(), count.Load()+more
		testvault.Eventually(t, "keys are made", func() bool { return count.Load() >= want })
		return time.Since(began)
	}
	reach(20)
	active.Kill()
	t.Logf("available again %s after the leader was killed", reach(20).Round(time.Millisecond))
	stop()
	wait.Wait()
	o.Timeout = MaxTimeout
	checkHandedOut(t, open(t, o), &handedOut)
	t.Logf("%d keys made, %d calls refused as unavailable", count.Load(), unavailable.Load())
	testvault.Report(t, "vault, three nodes with Raft, leader killed: ran")
}

func checkHandedOut(t *testing.T, s *Store, handedOut *sync.Map) {
	t.Helper()
	var ids []datakey.ID
	handedOut.Range(func(id, _ any) bool {
		known, ok := id.(datakey.ID)
		ids = append(ids, known)
		return ok
	})
	found, err := s.Lookup(t.Context(), "claims", ids)
	if err != nil || len(found) != len(ids) {
		t.Fatalf("%d of %d keys are there: %v", len(found), len(ids), err)
	}
	var records []store.Record
	for _, r := range found {
		records = append(records, r)
	}
	keys, err := s.Unwrap(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	wipeKeys(keys)
	if current := mustCurrent(t, s, "claims"); current.Scope != "claims" {
		t.Error(current)
	}
}
