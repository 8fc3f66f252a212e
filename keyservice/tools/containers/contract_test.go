// Package containers runs the contract of package store on a Vault in a container, where Docker runs. It is a module of its own, so that
// what testcontainers needs stays out of the key service's.
package containers

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/vault/api"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/storetest"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

const image = "hashicorp/vault:1.21.1"

func TestContractContainer(t *testing.T) {
	server := start(t)
	storetest.Run(t, storetest.Backend{Replicas: true, Staleness: time.Second, New: func(t *testing.T) func() store.Store {
		t.Helper()
		o, place := vault.Defaults(), server.NewPlace(t)
		o.Addresses, o.Transit, o.KV = []string{server.Address}, place.Transit, place.KV
		o.Login.Token = &vault.TokenLogin{File: place.TokenFile}
		quiet := slog.New(slog.DiscardHandler)
		if err := vault.Init(t.Context(), o, quiet); err != nil {
			t.Fatal(err)
		}
		return func() store.Store {
			s, err := vault.Open(t.Context(), o, quiet)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
	}})
	testvault.Report(t, "vault in a container (testcontainers, "+image+"): ran")
}

// start starts a Vault in dev mode. Where Docker does not run, the test is skipped with a loud line.
func start(t *testing.T) *testvault.Server {
	t.Helper()
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err == nil {
		err = provider.Health(t.Context())
	}
	if err != nil {
		testvault.Report(t, "vault in a container (testcontainers): MISSING, it did NOT run, because Docker does not run here")
		if os.Getenv("CIPHERLANE_NEED_DOCKER") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	const token = "root-of-this-test-only"
	container, err := testcontainers.Run(t.Context(), image,
		testcontainers.WithExposedPorts("8200/tcp"),
		testcontainers.WithEnv(map[string]string{"VAULT_DEV_ROOT_TOKEN_ID": token, "VAULT_DEV_LISTEN_ADDRESS": "0.0.0.0:8200"}),
		testcontainers.WithWaitStrategy(wait.ForHTTP("/v1/sys/health").WithPort("8200/tcp")))
	testcontainers.CleanupContainer(t, container)
	if err != nil {
		t.Fatal(err)
	}
	address, err := container.PortEndpoint(t.Context(), "8200/tcp", "http")
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(&api.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	client.SetToken(token)
	return &testvault.Server{Address: address, Root: client}
}
