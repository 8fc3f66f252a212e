package vault

import (
	"log/slog"
	"testing"

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

// newPlace gives options for a place of their own in a Vault.
func newPlace(t *testing.T, server *testvault.Server) Options {
	t.Helper()
	o, place := Defaults(), server.NewPlace(t)
	o.Addresses, o.CA = []string{server.Address}, server.CA
	o.Transit, o.KV, o.Login.Token = place.Transit, place.KV, &TokenLogin{File: place.TokenFile}
	return o
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
