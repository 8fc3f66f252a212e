package vault

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/storetest"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

func TestContractDev(t *testing.T) { runContract(t, "vault, dev mode: ran", testvault.Dev(t, false)) }

func TestContractDevTLS(t *testing.T) {
	runContract(t, "vault, dev mode with TLS: ran", testvault.Dev(t, true))
}

func runContract(t *testing.T, line string, server *testvault.Server) {
	t.Helper()
	version, err := server.Root.Sys().Health()
	if err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, storetest.Backend{Replicas: true, Staleness: currentTTL, New: func(t *testing.T) func() store.Store {
		t.Helper()
		o := newPlace(t, server)
		initialise(t, o)
		return func() store.Store { return open(t, o) }
	}})
	testvault.Report(t, line+" (version "+version.Version+")")
}

var places atomic.Int32

// newPlace makes two engines, a policy for them, as VAULT.md has it, and a token that has only this.
func newPlace(t *testing.T, server *testvault.Server) Options {
	t.Helper()
	number := places.Add(1)
	o := Defaults()
	o.Addresses, o.CA = []string{server.Address}, server.CA
	o.Transit, o.KV = fmt.Sprint("transit-", number), fmt.Sprint("kv-", number)
	server.Mount(t, o.Transit, o.KV)
	name := fmt.Sprint("keyservice-", number)
	if err := server.Root.Sys().PutPolicy(name, policyOf(t, o)); err != nil {
		t.Fatal(err)
	}
	o.Login.Token = &TokenLogin{File: secretFile(t, server.Token(t, name, time.Hour))}
	return o
}

// policyOf takes the policy that VAULT.md shows.
func policyOf(t *testing.T, o Options) string {
	t.Helper()
	document, err := os.ReadFile("../../../VAULT.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindSubmatch(document)
	if block == nil {
		t.Fatal("VAULT.md shows no policy")
	}
	return strings.NewReplacer(`"cipherlane-transit/`, `"`+o.Transit+"/", `"cipherlane/`, `"`+o.KV+"/").Replace(string(block[1]))
}

func secretFile(t *testing.T, content string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "secret")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func initialise(t *testing.T, o Options) {
	t.Helper()
	if err := Init(t.Context(), o, quiet()); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
