// Package embeddedtest opens the embedded store for the tests of what uses a store.
package embeddedtest

import (
	"path/filepath"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded"
)

// New gives a store of its own, which is closed when the test ends.
func New(t testing.TB) store.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	paths := embedded.Paths{Keys: filepath.Join(dir, "keys.db"), KEK: filepath.Join(dir, "kek.json")}
	if err := embedded.Init(paths); err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
