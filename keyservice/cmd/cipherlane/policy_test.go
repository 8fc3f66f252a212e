// The commands about a policy file, bootstrap tokens and the CA.

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

func policyFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const someCases = `version: 1
cases:
  - {name: writes, principal: "spiffe://dev.cipherlane/producer", action: encrypt, topic: claims, expect: allowed}
  - {name: rotates not, principal: "spiffe://dev.cipherlane/producer", action: rotate, scope: claims, expect: refused, code: not-authorized}
`

func TestPolicyTest(t *testing.T) {
	policy, cases := policyFile(t, "policy.yaml", operatorPolicy), policyFile(t, "cases.yaml", someCases)
	out := tool(t, "policy", "test", policy, cases).ok(t)
	for _, want := range []string{"ok", "writes (line 3)", "grant 1, topic rule 1", "rotates not (line 4)", "no rule"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	wrong := policyFile(t, "cases.yaml", strings.Replace(someCases, "expect: allowed", "expect: refused", 1))
	got := tool(t, "policy", "test", policy, wrong)
	if got.code != 1 || !strings.Contains(got.out, "FAIL") || !strings.Contains(got.errors, "1 of 2 cases are not as expected") {
		t.Errorf("%+v", got)
	}
	got = tool(t, "--json", "policy", "test", policy, wrong)
	if got.code != 1 || !strings.Contains(got.out, `"failed": 1`) || !strings.Contains(got.out, `"problem": "allowed"`) {
		t.Errorf("%+v", got)
	}
	bad := policyFile(t, "policy.yaml", operatorPolicy+"oops: 1\n")
	if got := tool(t, "policy", "test", bad, cases); got.code != 1 || !strings.Contains(got.errors, "unknown member") {
		t.Errorf("%+v", got)
	}
	if got := tool(t, "policy", "test", policy, "/nowhere"); got.code == 0 {
		t.Errorf("%+v", got)
	}
}

func TestPolicyExplain(t *testing.T) {
	policy := policyFile(t, "policy.yaml", operatorPolicy+`  - principals: ["tenant-*"]
    name: tenants
    actions: [encrypt]
    topics: ["*"]
    when: 'claims.topic == request.topic && request.remote == "10.0.0.1"'
    not_after: 2027-01-01T00:00:00Z
`)
	const writer = "spiffe://dev.cipherlane/producer"
	for _, c := range []struct {
		args  []string
		wants []string
	}{
		{[]string{writer, "encrypt", "claims.x"}, []string{"grant 1", "matches", "topic rule 1", "ALLOWED: mode encrypt, scope claims, for 5m 0s"}},
		{[]string{writer, "decrypt", "claims"}, []string{"names no such principal", "REFUSED (not-authorized)"}},
		{[]string{"tenant-1", "encrypt", "claims", "--claim", "topic=claims", "--remote", "10.0.0.1", "--at", "2026-12-31T23:58:00Z"}, []string{"grant 5 (tenants)", "for 2m 0s, ends at 2027-01-01T00:00:00Z"}},
		{[]string{"tenant-1", "encrypt", "claims", "--claim", "topic=claims", "--remote", "10.0.0.1", "--at", "2027-01-01T00:00:00Z"}, []string{"has ended", "REFUSED"}},
		{[]string{"tenant-1", "encrypt", "claims"}, []string{"could not be evaluated", "no such key: topic", "REFUSED"}},
		{[]string{"spiffe://dev.cipherlane/operator", "revoke"}, []string{"grant 4", "ALLOWED."}},
	} {
		out := tool(t, append([]string{"policy", "explain", policy}, c.args...)...).ok(t)
		for _, want := range c.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%v: %q is not in\n%s", c.args, want, out)
			}
		}
	}
	var answer struct {
		Allowed   bool
		ExpiresIn int `json:"expires_in"`
	}
	tool(t, "--json", "policy", "explain", policy, writer, "encrypt", "claims").json(t, &answer)
	if !answer.Allowed || answer.ExpiresIn != 300 {
		t.Errorf("%+v", answer)
	}
	for _, args := range [][]string{{writer, "encrypt"}, {writer, "admin", "claims"}, {writer, "peek", "claims"}, {writer, "group"}, {writer, "cluster", "x"}, {writer, "encrypt", "a", "--remote", "x"}, {writer, "encrypt", "a", "--at", "today"}} {
		if got := tool(t, append([]string{"policy", "explain", policy}, args...)...); got.code == 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestRollover(t *testing.T) {
	k := testservice.StartKeyService(t, operatorPolicy)
	if out := shows(t, k, []string{"ca", "begin"}, "The next CA is trusted"); strings.Count(out, "BEGIN CERTIFICATE") != 2 {
		t.Errorf("%s", out)
	}
	if got := tool(t, "--config", k.Operator, "ca", "finish"); got.code != 1 || !strings.Contains(got.errors, "force") {
		t.Errorf("%+v", got)
	}
	shows(t, k, []string{"ca", "finish", "--force"}, "signs from now on")
	if got := tool(t, "--config", k.Operator, "token", "create", "alice"); got.code != 1 || !strings.Contains(got.errors, "bootstrap_tokens") {
		t.Errorf("%+v", got)
	}
}

// tokenPolicy lets the operator make tokens, and alice have a certificate.
const tokenPolicy = operatorPolicy + `  - principals: ["spiffe://dev.cipherlane/alice"]
    actions: [certificate]
`

// startWithTokens starts a key service that gives certificates for bootstrap tokens.
func startWithTokens(t *testing.T) *testservice.KeyService {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dev")
	const config = `listen: 127.0.0.1:8443
tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
policy: policy.yaml
store: {embedded: {path: keys.db, kek: kek.json}}
audit: {file: audit.jsonl}
certificates: {ca: embedded, bootstrap_tokens: true}
`
	err := os.Mkdir(dir, 0o700)
	for name, text := range map[string]string{"policy.yaml": tokenPolicy, "keyservice.yaml": config} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return testservice.StartKeyServiceIn(t, dir)
}

// [CL-IDN-010] A token that the tool made is good for one certificate.
func TestTokenCreate(t *testing.T) {
	k := startWithTokens(t)
	var made operator.Token
	asks(t, k, &made, "token", "create", "--expires-in", "1m", "spiffe://dev.cipherlane/alice")
	if made.Principal != "spiffe://dev.cipherlane/alice" || made.ExpiresIn != 60 {
		t.Errorf("%q for %d s", made.Principal, made.ExpiresIn)
	}
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if got := useToken(t, k, made.Token); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
	shows(t, k, []string{"token", "create", "spiffe://dev.cipherlane/alice"}, "Good once, within 1h 0m", "spiffe://dev.cipherlane/alice")
}

// useToken asks for a certificate with a token, without a certificate, and gives the status.
func useToken(t *testing.T, k *testservice.KeyService, token string) int {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := operator.TLSConfig(k.CA, "", "")
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+"/v1/certificate", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: cfg}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}
