package testservice

import (
	"os"
	"os/exec"
	"testing"
)

// Installed gives the path of a program that `make setup` installs. Without it the test is skipped, with a loud line; in CI it fails.
func Installed(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed, and CI must have it: run `make setup`", program)
	}
	t.Skipf("NOT TESTED: %s is not installed: run `make setup`", program)
	return ""
}
