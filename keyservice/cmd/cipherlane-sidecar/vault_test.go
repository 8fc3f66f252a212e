// A sidecar whose key service keeps its keys and its revocations in a real Vault.

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// initialise makes the key store that a configuration names.
func initialise(t *testing.T, config string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), testservice.Program(t), "init", "--config", config).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

// [CL-ACC-011] [CL-ACC-012] What the policy grants passes, the rest does not; a revocation goes through Vault. While Vault is sealed, leases end and nothing
// passes; when it is not any more, everything does again.
func testAccessOnVault(t *testing.T, broker string) {
	t.Helper()
	server := testvault.Dev(t, true)
	place := server.NewPlace(t)
	g := startGuardedOn(t, broker, accessPolicy, fmt.Sprintf("vault: {addresses: [%q], ca: %q, transit: %s, kv: %s, timeout: 1s, login: {token: {file: %q}}}",
		server.Address, server.CA, place.Transit, place.KV, place.TokenFile))
	writer := g.as(t, "writer")
	if err := write(t, writer, "open"); err != nil {
		t.Fatal(err)
	}
	reader := g.as(t, "reader", kgo.ConsumeTopics("open"), kgo.ConsumerGroup("readers-vault"))
	if n, err := readError(t, reader); n == 0 || err != nil {
		t.Error(n, err)
	}
	for _, topic := range []string{"secret", "other"} {
		if err := write(t, writer, topic); !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("%s: %v", topic, err)
		}
	}
	server.Seal(t)
	eventually(t, "the end of the lease", func() bool { return g.produced(t, writer, "open") == kerr.NotEnoughReplicas.Code })
	server.Unseal(t)
	eventually(t, "the next lease", func() bool { return g.produced(t, writer, "open") == 0 })
	g.revoke(t, "writer")
	eventually(t, "the revocation", func() bool { return errors.Is(write(t, writer, "open"), kerr.TopicAuthorizationFailed) })
}
