package vault

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
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
	var last Options
	storetest.Run(t, storetest.Backend{Replicas: true, Staleness: currentTTL, New: func(t *testing.T) func() store.Store {
		t.Helper()
		o := newPlace(t, server)
		initialise(t, o)
		last = o
		return func() store.Store { return open(t, o) }
	}, Holds: func(t *testing.T, data []byte) bool {
		t.Helper()
		return kvHolds(t, server, last.KV, "keyservice/", string(data))
	}})
	testvault.Report(t, line+" (version "+version.Version+")")
}

// kvHolds looks through every version of every document below a folder, as root.
func kvHolds(t *testing.T, server *testvault.Server, mount, folder, text string) bool {
	t.Helper()
	listed, err := server.Root.Logical().List(mount + "/metadata/" + folder)
	if err != nil || listed == nil {
		t.Fatal(folder, err)
	}
	names, _ := listed.Data["keys"].([]any)
	for _, one := range names {
		name := folder + fmt.Sprint(one)
		if strings.HasSuffix(name, "/") && kvHolds(t, server, mount, name, text) {
			return true
		}
		for version := range 12 {
			secret, err := server.Root.Logical().ReadWithData(mount+"/data/"+name, map[string][]string{"version": {strconv.Itoa(version)}})
			if err == nil && secret != nil && strings.Contains(fmt.Sprint(secret.Data["data"]), text) {
				return true
			}
		}
	}
	return false
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
