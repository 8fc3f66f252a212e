// Where the keys for JWTs come from.

package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// [CL-IDN-006]
func TestBadKeySets(t *testing.T) {
	i := newIssuer()
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	many := make([]jose.JSONWebKey, 101)
	for n := range many {
		many[n] = public(i.ec, strings.Repeat("k", n+1), "", "")
	}
	for name, data := range map[string][]byte{
		"empty":           nil,
		"not JSON":        []byte("keys"),
		"no keys":         []byte(`{"keys":[]}`),
		"other object":    []byte(`{}`),
		"private key":     encodeSet([]jose.JSONWebKey{{Key: i.ec, KeyID: "ec"}}),
		"symmetric key":   encodeSet([]jose.JSONWebKey{public(i.ec, "ec", "", ""), {Key: make([]byte, 32), KeyID: "h"}}),
		"weak key":        encodeSet([]jose.JSONWebKey{public(weak, "w", "", "")}),
		"kid twice":       encodeSet([]jose.JSONWebKey{public(i.ec, "a", "", ""), public(i.ed, "a", "", "")}),
		"101 keys":        encodeSet(many),
		"too large":       append(encodeSet(i.set()), strings.Repeat(" ", 256<<10)...),
		"trailing":        append(encodeSet(i.set()), '{'),
		"point off curve": []byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE","y":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE","kid":"x"}]}`),
	} {
		if _, err := NewJWT(optionsFor(t, data), quiet()); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestBadOptions(t *testing.T) {
	good := optionsFor(t, encodeSet(newIssuer().set()))
	for name, change := range map[string]func(*JWTOptions){
		"no issuer":     func(o *JWTOptions) { o.Issuer = "" },
		"no audience":   func(o *JWTOptions) { o.Audience = "" },
		"no principals": func(o *JWTOptions) { o.Principals = nil },
		"bad pattern":   func(o *JWTOptions) { o.Principals = []string{"**"} },
		"no source":     func(o *JWTOptions) { o.File = "" },
		"two sources":   func(o *JWTOptions) { o.URL, o.CA = "https://issuer/jwks", "ca.pem" },
		"http":          func(o *JWTOptions) { o.File, o.URL, o.CA = "", "http://issuer/jwks", "ca.pem" },
		"no CA":         func(o *JWTOptions) { o.File, o.URL = "", "https://issuer/jwks" },
		"user in URL":   func(o *JWTOptions) { o.File, o.URL, o.CA = "", "https://me:pw@issuer/jwks", "ca.pem" },
		"CA missing":    func(o *JWTOptions) { o.File, o.URL, o.CA = "", "https://issuer/jwks", "/nowhere/ca.pem" },
		"file missing":  func(o *JWTOptions) { o.File += ".gone" },
	} {
		o := good
		change(&o)
		if _, err := NewJWT(o, quiet()); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// jwksServer is an issuer's address, over TLS, whose answer the test changes.
type jwksServer struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int32
	ca     string
}

func newJWKSServer(t *testing.T) *jwksServer {
	t.Helper()
	s := &jwksServer{ca: filepath.Join(t.TempDir(), "ca.pem")}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		(*s.answer.Load())(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	if err := os.WriteFile(s.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *jwksServer) says(status int, body []byte) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
	s.answer.Store(&h)
}

// [CL-IDN-006] Keys from an address: a new key is found, an old one goes, faults change nothing for a while.
func TestKeysFromAnAddress(t *testing.T) {
	i, s := newIssuer(), newJWKSServer(t)
	o := optionsFor(t, nil)
	o.File, o.URL, o.CA, o.Refresh = "", s.URL+"/jwks", s.ca, time.Minute
	s.says(http.StatusInternalServerError, nil)
	j, err := NewJWT(o, quiet())
	if err != nil {
		t.Fatal("an issuer that is down must not stop the service:", err)
	}
	text := sign(jose.ES256, i.ec, "ec", claimsWith(map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()}))
	now := time.Now()
	check := func(after time.Duration, want refusal.Code) {
		t.Helper()
		_, err := j.Verify(t.Context(), text, now.Add(after))
		r, _ := errors.AsType[*refusal.Error](err)
		if want == "" && err != nil || want != "" && (r == nil || r.Code != want) {
			t.Errorf("after %s: %v; want %q", after, err, want)
		}
	}
	check(0, refusal.Unavailable)
	for status, body := range map[int][]byte{http.StatusOK: []byte("{}"), http.StatusFound: encodeSet(i.set()), http.StatusNoContent: nil} {
		s.says(status, body)
		check(2*time.Second, refusal.Unavailable)
	}
	s.says(http.StatusOK, append(encodeSet(i.set()), strings.Repeat(" ", 256<<10)...))
	check(4*time.Second, refusal.Unavailable)
	s.says(http.StatusOK, encodeSet(i.set()[1:]))
	check(6*time.Second, refusal.Unauthenticated)
	asked := s.asked.Load()
	for range 100 {
		check(7*time.Second, refusal.Unauthenticated)
	}
	if again := s.asked.Load(); again != asked {
		t.Errorf("an unknown kid made %d requests", again-asked)
	}
	s.says(http.StatusOK, encodeSet(i.set()))
	check(17*time.Second, "") // a new key, ten seconds after
	s.says(http.StatusInternalServerError, nil)
	check(10*time.Minute, "")
	check(23*time.Hour, "")
	check(25*time.Hour, refusal.Unavailable)
	s.says(http.StatusOK, encodeSet(i.set()[1:]))
	check(25*time.Hour+2*time.Second, refusal.Unauthenticated)
}

func TestAddressOfAnotherCA(t *testing.T) {
	i, s, other := newIssuer(), newJWKSServer(t), newJWKSServer(t)
	s.says(http.StatusOK, encodeSet(i.set()))
	o := optionsFor(t, nil)
	o.File, o.URL, o.CA = "", strings.Replace(s.URL, "127.0.0.1", "localhost", 1), other.ca
	j := must(NewJWT(o, quiet()))
	_, err := j.Verify(t.Context(), sign(jose.ES256, i.ec, "ec", claimsWith(nil)), time.Now())
	if r, ok := errors.AsType[*refusal.Error](err); !ok || r.Code != refusal.Unavailable || s.asked.Load() > 0 {
		t.Errorf("%v, %d requests", err, s.asked.Load())
	}
}
