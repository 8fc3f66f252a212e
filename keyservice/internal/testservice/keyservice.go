// The key service as a child process.

package testservice

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/dev"
)

// KeyService is one that runs in a folder of the test.
type KeyService struct {
	*child
	dev.Running
}

// Program gives the path of cipherlane-keyservice, built from these sources once.
func Program(t *testing.T) string {
	t.Helper()
	return program(t, "cipherlane-keyservice")
}

func moduleFolder() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..")
}

// StartKeyService runs the dev command on a new folder with a policy.
func StartKeyService(t *testing.T, policy string, flags ...string) *KeyService {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dev")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600)); err != nil {
		t.Fatal(err)
	}
	return StartKeyServiceIn(t, dir, flags...)
}

// StartKeyServiceIn runs the dev command on a folder that may have been used before.
func StartKeyServiceIn(t *testing.T, dir string, flags ...string) *KeyService {
	t.Helper()
	args := append([]string{"dev", "--dir", dir, "--json", "--until-stdin-closes", "--log-level", "debug"}, flags...)
	k := &KeyService{}
	k.child = start(t, exec.CommandContext(untilStopped(t), Program(t), args...), &k.Running) // #nosec G204 -- a test's own
	return k
}
