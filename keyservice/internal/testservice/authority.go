// A key service that gives certificates, in the process of the test.

package testservice

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/server"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded"
)

const authorityPolicy = `version: 1
topics:
  - {topics: [claims], mode: encrypt}
grants:
  - principals: ["spiffe://example.org/*"]
    actions: [certificate]
    lifetime: 1m
    server_names: ["localhost", "127.0.0.1"]
  - principals: ["spiffe://example.org/admin"]
    actions: [admin]
`

const authorityConfig = `listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
tls: {certificate: %s, key: %s, client_ca: %s}
policy: policy.yaml
store: {embedded: {path: keys.db, kek: kek.json}}
audit: {file: audit.jsonl}
certificates: {ca: embedded, bootstrap_tokens: true}
`

// Authority gives every principal of example.org certificates for a minute, also as a server on the loopback.
type Authority struct {
	URL string
	PKI *PKI // that its own certificate is of

	admin *http.Client
}

// StartAuthority runs one until the test ends.
func StartAuthority(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{PKI: NewPKI(t)}
	pair := a.PKI.Issue(t, "keyservice", "spiffe://example.org/keyservice", time.Hour)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "policy.yaml"), authorityPolicy)
	writeFile(t, filepath.Join(dir, "keyservice.yaml"), fmt.Sprintf(authorityConfig, pair.Certificate, pair.Key, a.PKI.CA))
	if err := embedded.Init(embedded.Paths{Keys: filepath.Join(dir, "keys.db"), KEK: filepath.Join(dir, "kek.json")}); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Read(filepath.Join(dir, "keyservice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := server.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- opened.Run(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error("the key service:", err)
		}
	})
	a.URL = "https://" + opened.Addresses().API.String()
	own := a.PKI.Issue(t, "admin", "spiffe://example.org/admin", time.Hour)
	tls, err := operator.TLSConfig(a.PKI.CA, own.Certificate, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	a.admin = &http.Client{Transport: &http.Transport{TLSClientConfig: tls}}
	return a
}

// Token puts a bootstrap token for a principal into a file.
func (a *Authority) Token(t *testing.T, path, principal string) {
	t.Helper()
	body := strings.NewReader(`{"principal": "` + principal + `", "expires_in": 60}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+"/v1/tokens", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.admin.Do(request) // #nosec G704 -- a test's own
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(data, &made); err != nil || made.Token == "" {
		t.Fatalf("%v %s", err, data)
	}
	writeFile(t, path, made.Token+"\n")
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
