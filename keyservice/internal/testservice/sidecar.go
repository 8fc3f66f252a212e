// The sidecar as a child process.

package testservice

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Sidecar is one that runs.
type Sidecar struct {
	*child
	Listeners map[string]string // name to host:port
}

// StartSidecar runs the sidecar with a configuration, which must choose port 0 where the port does not matter.
func StartSidecar(t *testing.T, config string) *Sidecar {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Sidecar{}
	s.child = start(t, exec.CommandContext(untilStopped(t), program(t, "cipherlane-sidecar"), // #nosec G204 -- a test's own
		"run", "--config", path, "--json", "--until-stdin-closes"), &s.Listeners)
	return s
}
