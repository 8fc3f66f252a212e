// Rewrapping, with the service killed again and again.

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded"
)

func (k *keyService) storePaths() embedded.Paths {
	return embedded.Paths{Keys: filepath.Join(k.Dir, "keys.db"), KEK: filepath.Join(k.Dir, "kek.json")}
}

// withStore opens the store of a service that does not run.
func (k *keyService) withStore(t *testing.T, use func(s *embedded.Store)) {
	t.Helper()
	s, err := embedded.Open(k.storePaths())
	if err != nil {
		t.Fatal(err)
	}
	use(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// text gives a key in base64.
func text(t *testing.T, s *embedded.Store, scope string, id datakey.ID) string {
	t.Helper()
	found, err := s.Lookup(t.Context(), scope, []datakey.ID{id})
	if err != nil || len(found) != 1 {
		t.Fatal("a key is gone", err)
	}
	keys, err := s.Unwrap(t.Context(), []store.Record{found[id]})
	if err != nil {
		t.Fatal(err)
	}
	return string(keys[0].AppendBase64(nil))
}

type rewrapState struct {
	State    string
	KEKsDone int `json:"keks_done"`
	KeysDone int `json:"keys_done"`
	Error    string
}

// [CL-OPR-011] Killed at any moment, a rewrap goes on when the service is started again, and ends; every key is what it was
// all the time, and there is one new version of the KEK, not one for each start.
func TestRewrapKilled(t *testing.T) {
	k := startOperated(t)
	k.stop(t)
	const count = 1200
	want := map[datakey.ID]string{}
	k.withStore(t, func(s *embedded.Store) {
		for i := range count {
			r, err := s.Rotate(t.Context(), fmt.Sprint("t-", i%3))
			if err != nil {
				t.Fatal(err)
			}
			want[r.ID] = text(t, s, r.Scope, r.ID)
		}
	})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	k = startIn(t, k.Dir)
	k.must(t, http.MethodPost, "/v1/rewrap", "{}")
	kills := 0
	for range 6 {
		time.Sleep(time.Duration(source.IntN(25)) * time.Millisecond)
		if into[rewrapState](t, k.must(t, http.MethodGet, "/v1/rewrap", "")).State == "running" {
			kills++
		}
		if err := k.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-k.done
		k = startIn(t, k.Dir)
	}
	var end rewrapState
	waitFor(t, "the rewrap ends", func() bool {
		end = into[rewrapState](t, k.must(t, http.MethodGet, "/v1/rewrap", ""))
		return end.State == "done"
	})
	t.Logf("%d of 6 kills while it ran; %+v", kills, end)
	if kills == 0 || end.KEKsDone != 1 || end.Error != "" {
		t.Errorf("%d kills, %+v", kills, end)
	}
	k.stop(t)
	k.withStore(t, func(s *embedded.Store) {
		if version, err := s.KEKVersion(t.Context(), ""); err != nil || version != 2 {
			t.Error("versions of the KEK:", version, err)
		}
		for id, key := range want {
			for scope := range 3 { // the scope only says where to look first
				if text(t, s, fmt.Sprint("t-", scope), id) != key {
					t.Fatal("another key under the same id")
				}
			}
		}
		if err := s.Rewrap(t.Context(), "", func(keys int) {
			if keys > 0 {
				t.Errorf("%d keys were left", keys)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// On Vault: every scope's KEK gets one new version, asked for once or twice, and clients do not notice.
func TestRewrapOnVault(t *testing.T) {
	k := startOnNewVault(t)
	kids := map[string]string{}
	for i := range 4 {
		a := k.encryptionKey(t, fmt.Sprint("t-", i))
		kids[fmt.Sprint("t-", i)] = a.text("kid")
	}
	k.must(t, http.MethodPost, "/v1/rewrap", "")
	k.must(t, http.MethodPost, "/v1/rewrap", "{}")
	var end rewrapState
	waitFor(t, "the rewrap ends", func() bool {
		end = into[rewrapState](t, k.must(t, http.MethodGet, "/v1/rewrap", ""))
		return end.State == "done"
	})
	if end.KEKsDone != 4 || end.KeysDone != 4 {
		t.Errorf("%+v", end)
	}
	for topic, kid := range kids {
		if _, keys := k.decrypt(t, topic, kid); keys[kid]["key"] == nil {
			t.Error(keys)
		}
		if k.encryptionKey(t, topic).text("kid") != kid {
			t.Error("rewrapping changed the current key")
		}
	}
}
