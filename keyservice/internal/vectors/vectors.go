// Package vectors reads the test vectors of spec/vectors for tests. Missing files fail the test.
package vectors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Vector is one case. Input and Output are left to the test.
type Vector struct {
	ID     string          `json:"id"`
	Input  json.RawMessage `json:"input"`
	Result string          `json:"result"`
	Output json.RawMessage `json:"output"`
	Error  *struct {
		Layer string `json:"layer"`
		Code  string `json:"code"`
	} `json:"error"`
}

// SpecFile gives the path of a file in spec/.
func SpecFile(t testing.TB, name string) string {
	t.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the source folder is not known")
	}
	return filepath.Join(filepath.Dir(here), "..", "..", "..", "spec", filepath.FromSlash(name))
}

// Read gives all vectors of a kind, such as "topic"; there is at least one.
func Read(t testing.TB, kind string) []Vector {
	t.Helper()
	data, err := os.ReadFile(SpecFile(t, "vectors/"+kind+".json"))
	if err != nil {
		t.Fatalf("the vectors are missing; run make -C spec vectors: %v", err)
	}
	var file struct{ Vectors []Vector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatalf("no vectors of kind %s", kind)
	}
	return file.Vectors
}

// Decode reads an input or output.
func Decode(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}
