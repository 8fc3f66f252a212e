package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const identityBase = `tls: {certificate: a, key: b, client_ca: c}
policy: p
audit: {file: d}
store: {embedded: {path: k, kek: e}}
`

const someJWT = "jwt: {issuer: i, audience: a, principals: [p], jwks_file: j"

func readText(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyservice.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

func TestIdentitySections(t *testing.T) {
	c, err := readText(t, identityBase)
	if err != nil || c.JWT != nil || c.Certificates != nil || c.TakesTokens() {
		t.Errorf("%+v %v", c, err)
	}
	c, err = readText(t, identityBase+someJWT+", algorithms: [ES384], leeway: 0s}\ncertificates: {ca: embedded}\n")
	if err != nil || !filepath.IsAbs(c.JWT.File) || c.JWT.CA != "" || c.JWT.Algorithms[0] != "ES384" || len(c.JWT.Algorithms) != 1 || c.JWT.PrincipalClaim != "sub" || !c.TakesTokens() {
		t.Errorf("%+v %v", c.JWT, err)
	}
	c, err = readText(t, identityBase+"certificates: {ca: embedded}\n")
	if err != nil || c.TakesTokens() || c.Certificates.BootstrapTokens {
		t.Errorf("%+v %v", c.Certificates, err)
	}
	onVault := strings.Replace(identityBase, "embedded: {path: k, kek: e}", `vault: {addresses: ["http://127.0.0.1:1"], login: {token: {file: t}}}`, 1)
	c, err = readText(t, onVault+"certificates: {ca: vault, pki: my-pki, role: r, bootstrap_tokens: true}\n")
	if err != nil || c.Certificates.Mount != "my-pki" || c.Certificates.Role != "r" || !c.TakesTokens() {
		t.Errorf("%+v %v", c.Certificates, err)
	}
	if _, err := readText(t, onVault+"certificates: {ca: embedded}\n"); err == nil || !strings.Contains(err.Error(), "ca: vault") {
		t.Error(err)
	}
}

func TestBadIdentitySections(t *testing.T) {
	for name, text := range map[string]string{
		"no issuer":          "jwt: {audience: a, principals: [p], jwks_file: j}",
		"no audience":        "jwt: {issuer: i, principals: [p], jwks_file: j}",
		"no principals":      "jwt: {issuer: i, audience: a, jwks_file: j}",
		"empty principals":   "jwt: {issuer: i, audience: a, principals: [], jwks_file: j}",
		"bad pattern":        "jwt: {issuer: i, audience: a, principals: [\"**\"], jwks_file: j}",
		"no keys":            "jwt: {issuer: i, audience: a, principals: [p]}",
		"two sources":        someJWT + ", jwks_url: \"https://i/j\", ca: c}",
		"http":               "jwt: {issuer: i, audience: a, principals: [p], jwks_url: \"http://i/j\", ca: c}",
		"no CA":              "jwt: {issuer: i, audience: a, principals: [p], jwks_url: \"https://i/j\"}",
		"alg none":           someJWT + ", algorithms: [none]}",
		"HMAC":               someJWT + ", algorithms: [HS256]}",
		"algorithm twice":    someJWT + ", algorithms: [ES256, ES256]}",
		"no algorithms":      someJWT + ", algorithms: []}",
		"leeway":             someJWT + ", leeway: 61s}",
		"refresh":            someJWT + ", refresh: 2h}",
		"unknown member":     someJWT + ", verify: false}",
		"no CA named":        "certificates: {bootstrap_tokens: true}",
		"unknown CA":         "certificates: {ca: file}",
		"Vault without it":   "certificates: {ca: vault}",
		"role without Vault": "certificates: {ca: embedded, role: r}",
		"role with a slash":  "certificates: {ca: vault, role: a/b}",
		"mount with dots":    "certificates: {ca: vault, pki: ../sys}",
		"truth value":        "certificates: {ca: embedded, bootstrap_tokens: maybe}",
	} {
		if _, err := readText(t, identityBase+text+"\n"); err == nil || !strings.Contains(err.Error(), "keyservice.yaml:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
