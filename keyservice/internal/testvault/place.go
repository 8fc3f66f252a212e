// A place in a Vault for one test: engines of its own, and a token with exactly the policy that VAULT.md shows.

package testvault

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Place is where a test keeps its keys.
type Place struct {
	Transit   string // mount
	KV        string // mount
	Policy    string // name
	TokenFile string
}

var places atomic.Int32

// NewPlace makes one.
func (s *Server) NewPlace(t testing.TB) Place {
	t.Helper()
	number := places.Add(1)
	p := Place{Transit: fmt.Sprint("transit-", number), KV: fmt.Sprint("kv-", number), Policy: fmt.Sprint("keyservice-", number)}
	s.Mount(t, p.Transit, p.KV)
	if err := s.Root.Sys().PutPolicy(p.Policy, p.policy(t)); err != nil {
		t.Fatal(err)
	}
	p.TokenFile = SecretFile(t, s.Token(t, p.Policy, time.Hour))
	return p
}

var policyBlock = regexp.MustCompile("(?s)```hcl\n(.*?)```")

func (p Place) policy(t testing.TB) string {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(buildFolder(), "..", "..", "VAULT.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := policyBlock.FindSubmatch(document)
	if block == nil {
		t.Fatal("VAULT.md shows no policy")
	}
	return strings.NewReplacer(`"cipherlane-transit/`, `"`+p.Transit+"/", `"cipherlane/`, `"`+p.KV+"/").Replace(string(block[1]))
}

// SecretFile writes a file of mode 0600 in a folder of mode 0700.
func SecretFile(t testing.TB, content string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "secret")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
