// The programs of this module, built for tests.

package testservice

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string
}

// program gives the path of a program of this module, built from these sources once.
func program(t *testing.T, name string) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if path, ok := built.paths[name]; ok {
		return path
	}
	path, err := compile(name)
	if err != nil {
		t.Fatal(err)
	}
	built.paths[name] = path
	return path
}

func compile(name string) (string, error) {
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "cipherlane-programs-")
		if err != nil {
			return "", err
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	path := filepath.Join(built.dir, name)
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", path, "./cmd/"+name) // #nosec G204 -- a test's own
	cmd.Dir = moduleFolder()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return path, nil
}

// Remove deletes what was built. Call it at the end of TestMain.
func Remove() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}
