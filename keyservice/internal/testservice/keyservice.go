// The key service as a child process.

package testservice

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/dev"
)

// KeyService is one that runs in a folder of the test.
type KeyService struct {
	*child
	dev.Running
}

var build struct {
	once sync.Once
	path string
	err  error
}

// Program gives the path of cipherlane-keyservice, built from these sources once.
func Program(t *testing.T) string {
	t.Helper()
	build.once.Do(func() {
		var dir string
		if dir, build.err = os.MkdirTemp("", "cipherlane-keyservice-"); build.err != nil { //nolint:usetesting // it outlives the test
			return
		}
		build.path = filepath.Join(dir, "cipherlane-keyservice")
		cmd := exec.CommandContext(context.Background(), "go", "build", "-o", build.path, "./cmd/cipherlane-keyservice") // #nosec G204 -- a test's own
		cmd.Dir = moduleFolder()
		out, err := cmd.CombinedOutput()
		if err != nil {
			build.err = errors.Join(err, errors.New(string(out)))
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// Remove deletes what Program built. Call it at the end of TestMain.
func Remove() {
	if build.path != "" {
		_ = os.RemoveAll(filepath.Dir(build.path))
	}
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
	k.child = start(t, exec.CommandContext(t.Context(), Program(t), args...), &k.Running) // #nosec G204 -- a test's own
	return k
}

// Signal sends the service a signal.
func (k *KeyService) Signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := k.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Kill ends it as a power cut would, and waits until it is gone.
func (k *KeyService) Kill(t *testing.T) {
	t.Helper()
	k.Signal(t, syscall.SIGKILL)
	<-k.done
}
