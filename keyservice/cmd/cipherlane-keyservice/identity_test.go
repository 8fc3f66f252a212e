// Certificates, bootstrap tokens, JWTs and the CA's rollover, end to end.

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// identityPolicy lets everybody of dev.cipherlane have a certificate, for a minute.
const identityPolicy = testPolicy + `  - principals: ["spiffe://dev.cipherlane/**", "batch-7"]
    actions: [certificate]
    lifetime: 1m
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [admin]
  - principals: ["spiffe://dev.cipherlane/alice"]
    actions: [encrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/tenant/*"]
    actions: [encrypt]
    topics: ["t-*"]
    when: 'claims.tenant == request.topic'
`

// startConfigured starts a service whose configuration has more sections in place of the one about certificates.
func startConfigured(t *testing.T, sections string) *keyService {
	t.Helper()
	return startPolicy(t, identityPolicy, sections)
}

func startPolicy(t *testing.T, policy, sections string) *keyService {
	t.Helper()
	dir := newFolder(t, policy)
	config := `listen: 127.0.0.1:8443
tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
policy: policy.yaml
store: {embedded: {path: keys.db, kek: kek.json}}
audit: {file: audit.jsonl}
` + sections + "\n"
	if err := os.WriteFile(filepath.Join(dir, "keyservice.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return startIn(t, dir)
}

const withTokens = "certificates: {ca: embedded, bootstrap_tokens: true}"

func newCSR(t *testing.T) (string, crypto.Signer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), key
}

func object(t *testing.T, members map[string]any) string {
	t.Helper()
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bearerCall calls with a bearer token, over a connection of the configuration given.
func (k *keyService) bearerCall(t *testing.T, cfg *tls.Config, path, token, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return do(t, client(t, cfg), request)
}

// certified gives a configuration with the certificate of an answer.
func (k *keyService) certified(t *testing.T, a answer, key crypto.Signer) *tls.Config {
	t.Helper()
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	block, _ := pem.Decode([]byte(a.text("certificate")))
	cfg := k.tlsConfig(t, "")
	cfg.Certificates = []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}}
	return cfg
}

const claims = `{"topic":"claims"}`

// [CL-IDN-020] [CL-IDN-021] [CL-IDN-025] A client gets its next certificate with the one that it has, and calls with it.
func TestCertificates(t *testing.T) {
	k := startConfigured(t, "certificates: {ca: embedded}")
	csr, key := newCSR(t)
	a := k.post(t, "producer", "/v1/certificate", object(t, map[string]any{"csr": csr}))
	cfg := k.certified(t, a, key)
	var life struct {
		RefreshIn int `json:"refresh_in"`
		ExpiresIn int `json:"expires_in"`
	}
	if err := json.Unmarshal(a.Body, &life); err != nil || life.ExpiresIn < 55 || life.ExpiresIn > 60 || life.RefreshIn != life.ExpiresIn*2/3 {
		t.Errorf("%+v %v", life, err)
	}
	if a := k.bearerCall(t, cfg, "/v1/encryption-key", "", claims); a.Status != http.StatusOK {
		t.Errorf("the certificate given is not taken: %d %s", a.Status, a.Body)
	}
	csr, key = newCSR(t)
	again := k.bearerCall(t, cfg, "/v1/certificate", "", object(t, map[string]any{"csr": csr}))
	_ = k.certified(t, again, key)
	policy := strings.Replace(identityPolicy, "spiffe://dev.cipherlane/**", "spiffe://dev.cipherlane/team/**", 1)
	replacePolicy(t, k, policy)
	waitFor(t, "the new policy", func() bool { return strings.Contains(k.stderr.String(), "policy reloaded") })
	refuses(t, k.post(t, "producer", "/v1/certificate", object(t, map[string]any{"csr": csr})), 403, "not-authorized")
	k.mustHaveAudited(t, `"action":"certificate"`, `"outcome":"begun"`, `"serial":"`)
}

// mustHaveAudited sees that texts stand in the audit log.
func (k *keyService) mustHaveAudited(t *testing.T, texts ...string) {
	t.Helper()
	log, err := os.ReadFile(k.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(string(log), text) {
			t.Errorf("the audit log has no %s", text)
		}
	}
}

// [CL-API-015] [CL-IDN-020]
func TestBadCertificateCalls(t *testing.T) {
	k := startConfigured(t, withTokens)
	csr, _ := newCSR(t)
	const certificate, tokens, begin = "/v1/certificate", "/v1/tokens", "/v1/ca/begin"
	for _, c := range []struct {
		principal, path, body string
		status                int
		code                  string
	}{
		{"producer", certificate, `{}`, 400, "request-invalid"},
		{"producer", certificate, `{"csr":null}`, 400, "request-invalid"},
		{"producer", certificate, `{"csr":""}`, 400, "request-invalid"},
		{"producer", certificate, `{"csr":"x","lifetime":3600}`, 400, "request-invalid"},
		{"producer", certificate, `{"csr":"` + strings.Repeat("x", 16<<10+1) + `"}`, 400, "request-invalid"},
		{"producer", certificate, `{"csr":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "request-too-large"},
		{"producer", tokens, `{"principal":"spiffe://dev.cipherlane/operator"}`, 403, "not-authorized"},
		{"operator", tokens, `{}`, 400, "request-invalid"},
		{"operator", tokens, `{"principal":""}`, 400, "request-invalid"},
		{"operator", tokens, `{"principal":"spiffe://dev.cipherlane"}`, 400, "request-invalid"},
		{"operator", tokens, `{"principal":"https://dev.cipherlane/x"}`, 400, "request-invalid"},
		{"operator", tokens, `{"principal":"a","expires_in":0}`, 400, "request-invalid"},
		{"operator", tokens, `{"principal":"a","expires_in":604801}`, 400, "request-invalid"},
		{"operator", tokens, `{"principal":"a","expires_in":1.5}`, 400, "request-invalid"},
		{"operator", tokens, `{"principal":"a","x":1}`, 400, "request-invalid"},
		{"producer", begin, `{}`, 403, "not-authorized"},
		{"operator", begin, `{"force":1}`, 400, "request-invalid"},
		{"operator", "/v1/ca/finish", ``, 400, "request-invalid"},
		{"operator", "/v1/ca", `{}`, 404, "not-found"},
	} {
		a := k.post(t, c.principal, c.path, c.body)
		refuses(t, a, c.status, c.code)
		if !k.audited(t, a.text("request_id"), c.code) {
			t.Errorf("%s: not in the audit log", c.path)
		}
	}
	plain := startConfigured(t, "")
	refuses(t, plain.post(t, "producer", certificate, object(t, map[string]any{"csr": csr})), 404, "not-found")
	refuses(t, plain.post(t, "operator", tokens, `{"principal":"a"}`), 404, "not-found")
	refuses(t, plain.post(t, "operator", begin, `{}`), 404, "not-found")
}

func (k *keyService) newToken(t *testing.T, principal string) string {
	t.Helper()
	a := k.post(t, "operator", "/v1/tokens", object(t, map[string]any{"principal": principal, "expires_in": 60}))
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return a.text("token")
}

// [CL-IDN-010] [CL-IDN-012] [CL-API-001] From nothing to a key, once.
func TestBootstrap(t *testing.T) {
	k := startConfigured(t, withTokens)
	const alice = "spiffe://dev.cipherlane/alice"
	nobody := k.tlsConfig(t, "")
	refuses(t, k.bearerCall(t, nobody, "/v1/encryption-key", "", claims), 401, "unauthenticated")
	token := k.newToken(t, alice)
	csr, key := newCSR(t)
	body := object(t, map[string]any{"csr": csr})
	for path, body := range map[string]string{"/v1/encryption-key": claims, "/v1/tokens": `{"principal":"a"}`, "/v1/nothing": `{}`} {
		refuses(t, k.bearerCall(t, nobody, path, token, body), 401, "unauthenticated")
	}
	refuses(t, k.bearerCall(t, k.tlsConfig(t, "producer"), "/v1/certificate", token, body), 401, "unauthenticated")
	refuses(t, k.bearerCall(t, nobody, "/v1/certificate", token, `{"csr":"x"}`), 400, "request-invalid") // which does not use it up
	cfg := k.certified(t, k.bearerCall(t, nobody, "/v1/certificate", token, body), key)
	if a := k.bearerCall(t, cfg, "/v1/encryption-key", "", claims); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	for _, bad := range []string{token, token[:len(token)-1], token + "A", "clbt_" + strings.Repeat("A", 43), "clbt_", "x", token[:len(token)-1] + "="} {
		refuses(t, k.bearerCall(t, nobody, "/v1/certificate", bad, body), 401, "unauthenticated")
	}
	log, err := os.ReadFile(k.Audit)
	if err != nil || strings.Contains(string(log), "clbt_") || strings.Contains(k.stderr.String(), "clbt_") {
		t.Error("a token stands in a log", err)
	}
	k.mustHaveAudited(t, `"action":"token"`, `"subject":"`+alice+`"`)
}

// [CL-IDN-011] A token that many show at once is good for one certificate.
func TestReplayedToken(t *testing.T) {
	k := startConfigured(t, withTokens)
	token := k.newToken(t, "batch-7")
	csr, _ := newCSR(t)
	body := object(t, map[string]any{"csr": csr})
	const callers, each = 20, 50
	var given atomic.Int32
	var wait sync.WaitGroup
	for range callers {
		c := client(t, k.tlsConfig(t, ""))
		wait.Go(func() {
			for range each {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+"/v1/certificate", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("Authorization", "Bearer "+token)
				response, err := c.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					given.Add(1)
				} else if response.StatusCode != http.StatusUnauthorized {
					t.Error(response.Status)
				}
			}
		})
	}
	wait.Wait()
	if given.Load() != 1 {
		t.Errorf("%d of %d calls got a certificate", given.Load(), callers*each)
	}
}

// [CL-API-001] Where tokens are taken, a bad certificate is still refused in the handshake.
func TestBadCertificateWhereTokensAreTaken(t *testing.T) {
	k := startConfigured(t, withTokens)
	producer := uris(t, "spiffe://dev.cipherlane/producer")
	for name, certificate := range map[string]tls.Certificate{
		"signed by itself": forge(t, "", func(c *x509.Certificate) { c.URIs = producer }),
		"expired":          forge(t, k.Dir, func(c *x509.Certificate) { c.URIs, c.NotAfter = producer, time.Now().Add(-time.Minute) }),
		"one hour ahead":   forge(t, k.Dir, func(c *x509.Certificate) { c.URIs, c.NotBefore = producer, time.Now().Add(50*time.Minute) }),
	} {
		cfg := k.tlsConfig(t, "")
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+"/v1/encryption-key", strings.NewReader(claims))
		if err != nil {
			t.Fatal(err)
		}
		if response, err := client(t, cfg).Do(request); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: answered %s", name, response.Status)
		}
	}
}

// jwtIssuer signs JWTs that a service takes.
type jwtIssuer struct{ key *ecdsa.PrivateKey }

func startWithJWT(t *testing.T) (*keyService, jwtIssuer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1"}}})
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := errors.Join(err, os.WriteFile(path, set, 0o600)); err != nil {
		t.Fatal(err)
	}
	k := startConfigured(t, withTokens+`
jwt:
  issuer: https://issuer
  audience: cipherlane
  principals: ["spiffe://dev.cipherlane/**"]
  jwks_file: `+path)
	return k, jwtIssuer{key}
}

func (i jwtIssuer) sign(t *testing.T, principal string, more map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	if err != nil {
		t.Fatal(err)
	}
	standard := jwt.Claims{Issuer: "https://issuer", Audience: jwt.Audience{"cipherlane"}, Subject: principal, Expiry: jwt.NewNumericDate(time.Now().Add(time.Minute))}
	text, err := jwt.Signed(signer).Claims(standard).Claims(more).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// [CL-IDN-001] [CL-IDN-005] [CL-POL-012] [CL-POL-013]
func TestJWT(t *testing.T) {
	k, issuer := startWithJWT(t)
	const producer, tenant = "spiffe://dev.cipherlane/producer", "spiffe://dev.cipherlane/tenant/a"
	nobody := k.tlsConfig(t, "")
	token := issuer.sign(t, producer, nil)
	const call = "/v1/encryption-key"
	ok := func(a answer) {
		t.Helper()
		if a.Status != http.StatusOK {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	ok(k.bearerCall(t, nobody, call, token, claims))
	ok(k.bearerCall(t, k.tlsConfig(t, "producer"), call, token, claims))
	ok(k.bearerCall(t, k.tlsConfig(t, "producer"), call, "", claims))
	refuses(t, k.bearerCall(t, k.tlsConfig(t, "consumer"), call, token, claims), 401, "unauthenticated")
	refuses(t, k.bearerCall(t, k.tlsConfig(t, "producer"), call, token+"x", claims), 401, "unauthenticated")
	refuses(t, k.bearerCall(t, nobody, call, issuer.sign(t, "batch-7", nil), claims), 401, "unauthenticated")
	refuses(t, k.bearerCall(t, nobody, call, issuer.sign(t, "spiffe://dev.cipherlane/stranger", nil), claims), 403, "not-authorized")
	ok(k.bearerCall(t, nobody, call, issuer.sign(t, tenant, map[string]any{"tenant": "t-1"}), `{"topic":"t-1"}`))
	refuses(t, k.bearerCall(t, nobody, call, issuer.sign(t, tenant, map[string]any{"tenant": "t-1"}), `{"topic":"t-2"}`), 403, "not-authorized")
	refuses(t, k.bearerCall(t, nobody, call, issuer.sign(t, tenant, nil), `{"topic":"t-1"}`), 403, "not-authorized")
	csr, key := newCSR(t)
	cfg := k.certified(t, k.bearerCall(t, nobody, "/v1/certificate", token, object(t, map[string]any{"csr": csr})), key)
	ok(k.bearerCall(t, cfg, call, "", claims))
	for _, header := range [][]string{{"Basic " + token}, {"Bearer"}, {"Bearer "}, {token}, {"Bearer " + token, "Bearer " + token}, {"Bearer " + token + ", Bearer x"}, {""}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+call, strings.NewReader(claims))
		if err != nil {
			t.Fatal(err)
		}
		request.Header["Authorization"], request.Header["Content-Type"] = header, []string{"application/json"}
		refuses(t, do(t, client(t, nobody), request), 401, "unauthenticated")
	}
	if strings.Contains(k.stderr.String(), token) {
		t.Error("a JWT stands in the log")
	}
}

// [CL-IDN-024] During a rollover, certificates of both CAs are taken, without a restart.
func TestRollover(t *testing.T) {
	k := startConfigured(t, "certificates: {ca: embedded}")
	get := func() (answer, *tls.Config) {
		t.Helper()
		csr, key := newCSR(t)
		a := k.post(t, "producer", "/v1/certificate", object(t, map[string]any{"csr": csr}))
		return a, k.certified(t, a, key)
	}
	first, old := get()
	if a := k.post(t, "operator", "/v1/ca/begin", ""); a.Status != http.StatusOK || strings.Count(a.text("ca"), "BEGIN") != 2 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	between, _ := get()
	if strings.Count(between.text("ca"), "BEGIN") != 2 || !strings.Contains(between.text("ca"), first.text("ca")) {
		t.Error("the next CA is not told before it signs")
	}
	refuses(t, k.post(t, "operator", "/v1/ca/begin", ""), 400, "request-invalid")
	refuses(t, k.post(t, "operator", "/v1/ca/finish", "{}"), 400, "request-invalid")
	time.Sleep(2500 * time.Millisecond) // the listener has looked
	if a := k.post(t, "operator", "/v1/ca/finish", `{"force":true}`); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	after, fresh := get()
	if strings.HasPrefix(after.text("ca"), first.text("ca")) || !strings.Contains(after.text("ca"), first.text("ca")) {
		t.Error("the old CA still signs, or is not trusted any more")
	}
	for name, cfg := range map[string]*tls.Config{"old": old, "new": fresh} {
		if a := k.bearerCall(t, cfg, "/v1/encryption-key", "", claims); a.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
}

// A principal that was revoked gets no certificate, neither with the one that it has nor with a token.
func TestRevokedPrincipalsGetNoCertificate(t *testing.T) {
	k := startPolicy(t, strings.Replace(identityPolicy, "actions: [admin]", "actions: [admin, revoke]", 1), withTokens)
	csr, _ := newCSR(t)
	body := object(t, map[string]any{"csr": csr})
	token := k.newToken(t, "spiffe://dev.cipherlane/alice")
	for _, name := range []string{"producer", "alice"} {
		if a := k.post(t, "operator", "/v1/revocations", object(t, map[string]any{"principal": "spiffe://dev.cipherlane/" + name, "reason": "lost"})); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	refuses(t, k.post(t, "producer", "/v1/certificate", body), 403, "not-authorized")
	refuses(t, k.bearerCall(t, k.tlsConfig(t, ""), "/v1/certificate", token, body), 403, "not-authorized")
}
