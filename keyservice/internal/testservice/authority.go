// A key service that gives certificates, in the process of the test.

package testservice

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

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
    lifetime: %s
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
jwt: {issuer: "https://issuer.example.org", audience: cipherlane, principals: ["spiffe://example.org/*"], jwks_file: %s}
`

// Authority gives every principal of example.org certificates, also as a server on the loopback.
type Authority struct {
	URL string
	PKI *PKI // that its own certificate is of

	admin  *http.Client
	nobody *http.Client      // without a certificate
	signer *ecdsa.PrivateKey // of JWTs
}

// StartAuthority runs one until the test ends. Its certificates hold for lifetime.
func StartAuthority(t *testing.T, lifetime time.Duration) *Authority {
	t.Helper()
	a := &Authority{PKI: NewPKI(t)}
	pair := a.PKI.Issue(t, "keyservice", "spiffe://example.org/keyservice", time.Hour)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "policy.yaml"), fmt.Sprintf(authorityPolicy, lifetime))
	writeFile(t, filepath.Join(dir, "keyservice.yaml"), fmt.Sprintf(authorityConfig, pair.Certificate, pair.Key, a.PKI.CA, a.jwks(t, dir)))
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
	anonymous := tls.Clone()
	anonymous.Certificates = nil
	a.nobody = &http.Client{Transport: &http.Transport{TLSClientConfig: anonymous}}
	return a
}

// jwks writes the public key that JWTs are verified with.
func (a *Authority) jwks(t *testing.T, dir string) (path string) {
	t.Helper()
	var err error
	if a.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: a.signer.Public(), KeyID: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "jwks.json")
	writeFile(t, path, string(set))
	return path
}

// JWT puts a JWT for a principal into a file, as an issuer's agent would.
func (a *Authority) JWT(t *testing.T, path, principal, audience string) {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: a.signer}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: "https://issuer.example.org", Audience: jwt.Audience{audience}, Subject: principal, Expiry: jwt.NewNumericDate(time.Now().Add(5 * time.Minute)),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+".new", text+"\n")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// Token puts a bootstrap token for a principal into a file.
func (a *Authority) Token(t *testing.T, path, principal string) {
	t.Helper()
	var made operator.Token
	a.post(t, "/v1/tokens", "", map[string]any{"principal": principal, "expires_in": 60}, &made)
	writeFile(t, path, made.Token+"\n")
}

// KeyStore gets a certificate for a server on the loopback and gives two PEM files as Kafka's brokers take them: the key with its chain, and the CAs.
func (a *Authority) KeyStore(t *testing.T, name string) (store, cas string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wanted := x509.CertificateRequest{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &wanted, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	a.Token(t, token, "spiffe://example.org/"+name)
	bearer, err := os.ReadFile(token) // #nosec G304 -- of this test
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Certificate string `json:"certificate"`
		CA          string `json:"ca"`
	}
	request := map[string]any{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))}
	a.post(t, "/v1/certificate", strings.TrimSpace(string(bearer)), request, &made)
	store, cas = filepath.Join(dir, "server.pem"), filepath.Join(dir, "ca.pem")
	writeFile(t, store, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))+made.Certificate)
	writeFile(t, cas, made.CA)
	return store, cas
}

// post calls the key service: with a token, or else as its operator.
func (a *Authority) post(t *testing.T, path, token string, body, answer any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := a.admin
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
		client = a.nobody
	}
	response, err := client.Do(request) // #nosec G704 -- a test's own
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", path, response.Status, err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
