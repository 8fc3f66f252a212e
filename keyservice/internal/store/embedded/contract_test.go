package embedded

import (
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/storetest"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

func TestContract(t *testing.T) {
	testvault.Report(t, "embedded: ran")
	storetest.Run(t, storetest.Backend{New: func(t *testing.T) func() store.Store {
		t.Helper()
		paths := initialised(t)
		return func() store.Store { return open(t, paths) }
	}})
}
