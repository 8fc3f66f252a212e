package embedded

import (
	"bytes"
	"encoding/base64"
	"os"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/storetest"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

func TestContract(t *testing.T) {
	testvault.Report(t, "embedded: ran")
	var paths Paths
	storetest.Run(t, storetest.Backend{New: func(t *testing.T) func() store.Store {
		t.Helper()
		paths = initialised(t)
		here := paths
		return func() store.Store { return open(t, here) }
	}, Holds: func(t *testing.T, data []byte) bool {
		t.Helper()
		file, err := os.ReadFile(paths.Keys)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(file, data) || bytes.Contains(file, []byte(base64.StdEncoding.EncodeToString(data)))
	}})
}
