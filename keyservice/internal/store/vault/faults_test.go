package vault

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// Sealed, hanging and dead: each with its own reason, available again after, and nothing lost.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	server := testvault.Dev(t, false)
	o, key := filled(t, server)
	s := open(t, o)
	expect := func(reasons ...Reason) {
		t.Helper()
		for call, err := range everyCall(t, s, key) {
			if !slices.Contains(reasons, reasonOf(err)) || !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v; want %v", call, err, reasons)
			}
		}
	}
	server.Seal(t)
	expect(Sealed)
	server.Unseal(t)
	server.Pause(t)
	expect(TimedOut)
	server.Resume(t)
	found, err := s.Lookup(t.Context(), "claims", []datakey.ID{key.ID})
	if err != nil || len(found) != 1 {
		t.Fatal("not as before", err)
	}
	server.Kill()
	s = openDead(t, o, s)
	expect(Unreachable)
}

// openDead gives a store with an empty memory whose server is gone: opening another would fail.
func openDead(t *testing.T, o Options, s *Store) *Store {
	t.Helper()
	o.Cache.TTL = 0
	dead := newStore(s.client, o, s.transport)
	t.Cleanup(func() {
		dead.stop()
		dead.sweeper.Wait()
	})
	return dead
}

// A Vault that takes its time is slow, not gone: every call ends well, and who wants what is in memory does not wait for it.
func TestSlowVault(t *testing.T) {
	t.Parallel()
	_, proxy, o := throughProxy(t)
	o.Timeout = 20 * time.Second
	s := open(t, o)
	warm := mustCurrent(t, s, "claims")
	unwrap := func() error {
		keys, err := s.Unwrap(t.Context(), []store.Record{warm})
		wipeKeys(keys)
		return err
	}
	if err := unwrap(); err != nil {
		t.Fatal(err)
	}
	const drag = 300 * time.Millisecond
	proxy.Fault(func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(drag)
		return false
	})
	cold := make(chan error, 1)
	go func() {
		_, err := s.Current(t.Context(), "cold")
		cold <- err
	}()
	proxy.Take()
	testvault.Eventually(t, "the cold call waits for Vault", func() bool { return len(proxy.Headers()) > 0 })
	began := time.Now()
	found, err := s.Lookup(t.Context(), "claims", []datakey.ID{warm.ID})
	if err := errors.Join(err, unwrap()); err != nil || len(found) != 1 || time.Since(began) > drag {
		t.Errorf("what is in memory waited %s for a slow Vault: %v", time.Since(began), err)
	}
	if err := <-cold; err != nil {
		t.Error(err)
	}
	for call, err := range everyCall(t, s, warm) {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// A call ends with its context, also while another waits for Vault.
func TestContextEnds(t *testing.T) {
	server := testvault.Dev(t, false)
	o, key := filled(t, server)
	o.Timeout = 10 * time.Second
	s := open(t, o)
	server.Pause(t)
	defer server.Resume(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	results := make(chan error, 4)
	for range cap(results) {
		go func() {
			_, err := s.Lookup(ctx, "claims", []datakey.ID{key.ID})
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; reasonOf(err) != TimedOut {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Error("took", took)
	}
}

// A token that Vault no longer knows is replaced by a new login, in the middle of a call; without a new one the error says so.
func TestTokenInvalid(t *testing.T) {
	server := testvault.Dev(t, false)
	o, key := filled(t, server)
	s := open(t, o)
	revoke := func() {
		t.Helper()
		if err := server.Root.Auth().Token().RevokeTree(s.client.api.Token()); err != nil {
			t.Fatal(err)
		}
	}
	revoke()
	for call, err := range everyCall(t, s, key) {
		if reasonOf(err) != TokenInvalid || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", call, err)
		}
	}
	policy := strings.Replace(o.KV, "kv-", "keyservice-", 1)
	if err := os.WriteFile(o.Login.Token.File, []byte(server.Token(t, policy, time.Hour)), 0o600); err != nil {
		t.Fatal(err)
	}
	for call, err := range everyCall(t, s, key) {
		if err != nil {
			t.Errorf("after a new token: %s: %v", call, err)
		}
	}
}

// A permission that is taken away is told from a token that ended, and given back works without a restart.
func TestPermissionTaken(t *testing.T) {
	server := testvault.Dev(t, false)
	o, key := filled(t, server)
	s := open(t, o)
	name := strings.Replace(o.KV, "kv-", "keyservice-", 1)
	before, err := server.Root.Sys().GetPolicy(name)
	if err != nil {
		t.Fatal(err)
	}
	takePolicy(t, server, o)
	for call, err := range everyCall(t, s, key) {
		if reasonOf(err) != Denied || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if err := server.Root.Sys().PutPolicy(name, before); err != nil {
		t.Fatal(err)
	}
	for call, err := range everyCall(t, s, key) {
		if err != nil {
			t.Errorf("given back: %s: %v", call, err)
		}
	}
}

// A short-lived token is renewed for longer than it lives.
func TestRenewal(t *testing.T) {
	t.Parallel()
	server := testvault.Dev(t, false)
	o, _ := filled(t, server)
	policy := strings.Replace(o.KV, "kv-", "keyservice-", 1)
	token := server.Token(t, policy, 3*time.Second)
	o.Login.Token = &TokenLogin{File: testvault.SecretFile(t, token)}
	s := open(t, o)
	for end := time.Now().Add(7 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.client.api.Token() != token {
		t.Error("not renewed, but replaced")
	}
}

// The certificate is always checked: neither another CA, nor another name, nor the environment gets around it.
func TestCertificateChecked(t *testing.T) {
	server, other := testvault.Dev(t, true), testvault.Dev(t, true)
	o := newPlace(t, server)
	initialise(t, o)
	t.Setenv("VAULT_SKIP_VERIFY", "true")
	t.Setenv("VAULT_TOKEN", server.Root.Token())
	o.CA = other.CA
	began := time.Now()
	_, err := Open(t.Context(), o, quiet())
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown || reasonOf(err) != Unreachable {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Error("tried again for", took)
	}
	o.CA = server.CA
	s := open(t, o)
	if s.client.api.Token() == server.Root.Token() {
		t.Error("the token of the environment was taken")
	}
	for name, content := range map[string]string{"empty": "", "no PEM": "hello", "missing": "-"} {
		bad := o
		if bad.CA = testvault.SecretFile(t, content); content == "-" {
			bad.CA += "-not"
		}
		if _, err := Open(t.Context(), bad, quiet()); err == nil || !strings.Contains(err.Error(), "ca: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The namespace goes with every request, logins included.
func TestNamespace(t *testing.T) {
	_, proxy, o := throughProxy(t)
	o.Namespace = "team-a"
	proxy.Take()
	_ = mustCurrent(t, open(t, o), "claims")
	headers := proxy.Headers()
	if len(headers) < 5 {
		t.Fatal(len(headers), "requests")
	}
	for i, header := range headers {
		if header.Get("X-Vault-Namespace") != "team-a" || header.Get("X-Vault-Request") != "true" {
			t.Error("request", i, "went without the namespace")
		}
	}
}
