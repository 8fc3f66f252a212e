package vault

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

const testTimeout = 250 * time.Millisecond

// throughProxy gives a store that reaches a real Vault through a proxy, and the options to open another.
func throughProxy(t *testing.T) (*testvault.Server, *testvault.Proxy, Options) {
	t.Helper()
	server := testvault.Dev(t, false)
	o := newPlace(t, server)
	proxy := testvault.NewProxy(t, server)
	o.Addresses = []string{proxy.Address}
	initialise(t, o)
	o.Timeout = testTimeout
	return server, proxy, o
}

func mustCurrent(t *testing.T, s *Store, scope string) store.Record {
	t.Helper()
	r, err := s.Current(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// everyCall makes each call that needs Vault, on a store whose memory is empty, and gives their errors.
func everyCall(t *testing.T, s *Store, known store.Record) map[string]error {
	t.Helper()
	unwrap := func() error {
		keys, err := s.Unwrap(t.Context(), []store.Record{known})
		wipeKeys(keys)
		return err
	}
	lookup := func() error {
		found, err := s.Lookup(t.Context(), known.Scope, []datakey.ID{known.ID})
		if err == nil && len(found) != 1 {
			t.Error("a key that exists was said not to")
		}
		return err
	}
	_, current := s.Current(t.Context(), known.Scope)
	_, first := s.Current(t.Context(), "first-use")
	_, rotate := s.Rotate(t.Context(), known.Scope)
	_, currents := s.Currents(t.Context())
	return map[string]error{
		"lookup": lookup(), "unwrap": unwrap(), "current": current, "first": first, "rotate": rotate, "currents": currents, "check": s.Check(t.Context()),
	}
}

type answerCase struct {
	name   string
	status int
	body   string
	reason Reason
}

var answerCases = []answerCase{
	{"bad request", 400, `{"errors":["bad"]}`, Invalid},
	{"KV engine just made", 400, `{"errors":["Upgrading from non-versioned to versioned data. This backend will be unavailable for a brief period"]}`, Failed},
	{"forbidden, token good", 403, `{"errors":["1 error occurred:\n\t* permission denied\n\n"]}`, Denied},
	{"no mount", 404, `{"errors":["no handler for route \"kv/data/x\". route entry not found."]}`, NoMount},
	{"404 with other errors", 404, `{"errors":["unsupported path"]}`, BadAnswer},
	{"404 of a web server", 404, `<html>Not Found</html>`, BadAnswer},
	{"404 of another JSON service", 404, `{}`, BadAnswer},
	{"404 without a body", 404, ``, BadAnswer},
	{"deleted document", 404, `{"data":{"data":null,"metadata":{"deletion_time":"2026-01-01T00:00:00Z","version":1}}}`, Damaged},
	{"precondition", 412, `{"errors":["required index state not present"]}`, Stale},
	{"rate limited", 429, `{"errors":["request path \"x\": rate limit quota exceeded"]}`, RateLimited},
	{"disaster recovery secondary", 472, `{"errors":["x"]}`, Standby},
	{"performance standby", 473, `{"errors":["x"]}`, Standby},
	{"redirect", 307, ``, Standby},
	{"internal error", 500, `{"errors":["internal error"]}`, Failed},
	{"no leader", 500, `{"errors":["local node not active but active cluster node not found"]}`, Standby},
	{"gateway", 502, `<html>Bad Gateway</html>`, Failed},
	{"sealed", 503, `{"errors":["Vault is sealed"]}`, Sealed},
	{"not ready", 503, `{"errors":["x"]}`, Failed},
	{"success, not JSON", 200, `<html>Welcome</html>`, BadAnswer},
	{"success, cut", 200, `{"data":{"da`, BadAnswer},
	{"success, empty", 200, ``, BadAnswer},
	{"success, too long", 200, `{"data":"` + strings.Repeat("x", maxAnswer) + `"}`, BadAnswer},
	{"teapot", 418, `{"errors":[]}`, BadAnswer},
}

// [CL-ERR-003] Every answer has a reason of its own, and none reads as "no such key".
func TestAnswersToldApart(t *testing.T) {
	_, proxy, o := throughProxy(t)
	known := mustCurrent(t, open(t, o), "claims")
	for _, c := range answerCases {
		t.Run(c.name, func(t *testing.T) {
			passes := slices.Contains([]Reason{Stale, RateLimited, Standby, Failed, Sealed}, c.reason)
			o.Timeout = 10 * time.Second
			if passes { // tried again to the end
				o.Timeout = testTimeout
			}
			s := open(t, o)
			proxy.Fault(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/v1/auth/token/") {
					return false // what is refused is the call, not the token
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
				return true
			})
			defer proxy.Fault(nil)
			for call, err := range everyCall(t, s, known) {
				if reasonOf(err) != c.reason || errors.Is(err, store.ErrUnavailable) != passes {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// A connection that breaks or hangs, at any request, is not an answer.
func TestNoAnswer(t *testing.T) {
	_, proxy, o := throughProxy(t)
	known := mustCurrent(t, open(t, o), "claims")
	for name, c := range map[string]struct {
		reason Reason
		fault  func(http.ResponseWriter, *http.Request) bool
	}{
		"cut": {Unreachable, func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }},
		"slow": {TimedOut, func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client hung up
			<-r.Context().Done()
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			proxy.Fault(c.fault)
			defer proxy.Fault(nil)
			for call, err := range everyCall(t, s, known) {
				if reasonOf(err) != c.reason || !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// What passes by itself is tried again: each request fails twice before it is let through.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	_, proxy, o := throughProxy(t)
	o.Timeout = MaxTimeout // a machine that stands still for a while is not what is tested
	s := open(t, o)
	known := mustCurrent(t, s, "claims")
	for _, status := range []int{412, 429, 503} {
		var count atomic.Int32 // the stores ask for more than one thing at a time
		proxy.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			n := count.Add(1)
			if n%3 == 0 {
				return false
			}
			w.WriteHeader(status)
			return true
		})
		for call, err := range everyCall(t, open(t, o), known) {
			if err != nil {
				t.Errorf("%d: %s: %v", status, call, err)
			}
		}
	}
}

// A write whose answer is lost was made all the same: trying again must not make a second key, nor lose the first.
func TestAnswerLost(t *testing.T) {
	server, proxy, o := throughProxy(t)
	o.Timeout = 5 * time.Second
	s := open(t, o)
	_ = mustCurrent(t, s, "claims")
	proxy.Fault(loseFirstAnswers(server))
	first := mustCurrent(t, s, "lossy")
	rotated, err := s.Rotate(t.Context(), "claims")
	if err != nil {
		t.Fatal(err)
	}
	proxy.Fault(nil)
	other := open(t, o)
	if mustCurrent(t, other, "lossy").ID != first.ID || mustCurrent(t, other, "claims").ID != rotated.ID {
		t.Error("another replica has other keys")
	}
	if n := pageLength(t, other, "lossy"); n != 1 {
		t.Errorf("%d keys instead of one", n)
	}
	if n := pageLength(t, other, "claims"); n != 2 {
		t.Errorf("%d keys instead of two", n)
	}
}

func pageLength(t *testing.T, s *Store, scope string) int {
	t.Helper()
	p, err := s.readPage(t.Context(), s.scopes.get(scope), 1)
	if err != nil {
		t.Fatal(err)
	}
	return len(p.keys)
}

// loseFirstAnswers hands the first write to each path to Vault and answers 502.
func loseFirstAnswers(server *testvault.Server) func(http.ResponseWriter, *http.Request) bool {
	var lost sync.Map // handlers run side by side
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		if _, before := lost.LoadOrStore(r.URL.Path, true); before {
			return false
		}
		request := r.Clone(r.Context())
		request.RequestURI = ""
		request.URL.Scheme, request.URL.Host = "http", strings.TrimPrefix(server.Address, "http://")
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
}

// A conflict on every write ends in an error of its own, after a bounded number of attempts.
func TestConflict(t *testing.T) {
	t.Parallel()
	_, proxy, o := throughProxy(t)
	o.Timeout = 5 * time.Second
	s := open(t, o)
	proxy.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/data/") {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"errors":["check-and-set parameter did not match the current version"]}`))
		return true
	})
	proxy.Take()
	if _, err := s.Rotate(t.Context(), "claims"); reasonOf(err) != Conflict || errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
	if n := len(proxy.Take()); n > 5*maxAttempts {
		t.Error(n, "requests")
	}
}
