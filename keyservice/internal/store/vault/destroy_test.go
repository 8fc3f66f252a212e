// Destroying on Vault when something goes wrong in the middle.

package vault

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// [CL-OPR-010] Cut off before the older versions are destroyed, the call fails with Vault's reason, and a second call does
// the rest.
func TestDestroyCutOff(t *testing.T) {
	server, proxy, o := throughProxy(t)
	s := open(t, o)
	for _, c := range []struct {
		status int
		want   Reason
	}{{http.StatusForbidden, Denied}, {http.StatusInternalServerError, Failed}, {http.StatusNotFound, BadAnswer}} {
		old := mustCurrent(t, s, "claims")
		if _, err := s.Rotate(t.Context(), "claims"); err != nil {
			t.Fatal(err)
		}
		proxy.Fault(func(w http.ResponseWriter, r *http.Request) bool {
			cut := strings.Contains(r.URL.Path, "/destroy/")
			if cut {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(`{"errors":["no"]}`))
			}
			return cut
		})
		if err := s.Destroy(t.Context(), "claims", []datakey.ID{old.ID}); reasonOf(err) != c.want {
			t.Errorf("%d: %v", c.status, err)
		}
		if !kvHolds(t, server, o.KV, "keyservice/", string(old.Wrapped)) {
			t.Fatal("this test shows nothing")
		}
		proxy.Fault(nil)
		found, err := s.Lookup(t.Context(), "claims", []datakey.ID{old.ID})
		if err != nil || !found[old.ID].IsDestroyed() {
			t.Error("given out although it is being destroyed", err)
		}
		if err := s.Destroy(t.Context(), "claims", []datakey.ID{old.ID}); err != nil || kvHolds(t, server, o.KV, "keyservice/", string(old.Wrapped)) {
			t.Error("the rest was not done", err)
		}
	}
}

// [CL-OPR-009] A key that another replica makes current while it is destroyed gets back what was taken, and the call is
// refused; a maker that comes later does not make a destroyed key current.
func TestDestroyMeetsMaker(t *testing.T) {
	_, proxy, o := throughProxy(t)
	s, other := open(t, o), open(t, o)
	_ = mustCurrent(t, s, "claims")
	for _, makerIsFaster := range []bool{true, false} {
		sc := other.scopes.get("claims")
		h, err := other.readHead(t.Context(), sc)
		if err != nil {
			t.Fatal(err)
		}
		made, key, err := other.newRecord(t.Context(), "claims", kekName("claims"))
		if err != nil {
			t.Fatal(err)
		}
		key.Wipe()
		p, err := other.readPage(t.Context(), sc, 1)
		if err == nil {
			err = other.putOnPage(t.Context(), sc, 1, p, made) // the maker stops here
		}
		if err != nil {
			t.Fatal(err)
		}
		goOn := func() error { return other.putHead(t.Context(), sc, head{h.version, 1, made}) }
		if makerIsFaster {
			var once sync.Once
			proxy.Fault(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/scopes/") {
					once.Do(func() {
						proxy.Fault(nil)
						if err := goOn(); err != nil {
							t.Error(err)
						}
					})
				}
				return false
			})
		}
		err = s.Destroy(t.Context(), "claims", []datakey.ID{made.ID})
		found, lookupErr := s.Lookup(t.Context(), "claims", []datakey.ID{made.ID})
		if lookupErr != nil {
			t.Fatal(lookupErr)
		}
		if makerIsFaster {
			keys, unwrapErr := s.Unwrap(t.Context(), []store.Record{found[made.ID]})
			if !errors.Is(err, store.ErrCurrent) || unwrapErr != nil {
				t.Fatal("the current key is gone", err, unwrapErr)
			}
			wipeKeys(keys)
			continue
		}
		if err != nil || !found[made.ID].IsDestroyed() {
			t.Fatal(err)
		}
		if err := goOn(); reasonOf(err) != Conflict {
			t.Fatal("a destroyed key was made current", err)
		}
		other.Forget()
		p, err = other.readPage(t.Context(), sc, 1)
		if err != nil || reasonOf(other.putOnPage(t.Context(), sc, 1, p, made)) != Conflict {
			t.Error("a destroyed key was taken for a new one", err)
		}
	}
}
