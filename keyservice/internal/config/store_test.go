package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
)

const beside = `tls: {certificate: server.pem, key: server-key.pem, client_ca: ../ca.pem}
policy: policy.yaml
audit: {file: audit.jsonl}
`

func readVault(t *testing.T, text string) (*vault.Options, string, error) {
	t.Helper()
	c, dir, err := read(t, beside+"store: {vault: {"+text+"}}\n")
	return c.Store.Vault, dir, err
}

const (
	secure  = `addresses: ["https://a:8200"], ca: vault-ca.pem`
	byToken = `login: {token: {file: token}}`
)

func TestVault(t *testing.T) {
	o, dir, err := readVault(t, secure+`, namespace: team-a, transit: t, kv: k, path: p/q, create_keks: false, timeout: 3s,
  cache: {ttl: 0s, keys: 7}, login: {approle: {mount: m, role_id_file: role, secret_id_file: /secret}}`)
	if err != nil {
		t.Fatal(err)
	}
	if o.CA != filepath.Join(dir, "vault-ca.pem") || *o.Login.AppRole != (vault.AppRoleLogin{Mount: "m", RoleIDFile: filepath.Join(dir, "role"), SecretIDFile: "/secret"}) {
		t.Fatalf("%+v %+v", o, o.Login.AppRole)
	}
	if o.Namespace != "team-a" || o.Transit != "t" || o.KV != "k" || o.Path != "p/q" || o.CreateKEKs || o.Timeout != 3*time.Second || o.Cache != (vault.CacheOptions{Keys: 7}) {
		t.Fatalf("%+v", o)
	}
}

func TestVaultLogins(t *testing.T) {
	for text, good := range map[string]func(vault.Login, string) bool{
		`token: {file: token}`: func(l vault.Login, dir string) bool { return l.Token.File == filepath.Join(dir, "token") },
		`kubernetes: {role: r}`: func(l vault.Login, _ string) bool {
			return *l.Kubernetes == vault.KubernetesLogin{Mount: "kubernetes", Role: "r", TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token"}
		},
		`certificate: {certificate: c, key: k}`: func(l vault.Login, dir string) bool {
			return *l.Certificate == vault.CertificateLogin{Mount: "cert", CertificateFile: filepath.Join(dir, "c"), KeyFile: filepath.Join(dir, "k")}
		},
	} {
		o, dir, err := readVault(t, secure+", login: {"+text+"}")
		if err != nil || !good(o.Login, dir) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestVaultMistakes(t *testing.T) {
	for text, want := range map[string]string{
		byToken:                      `"addresses" is missing`,
		secure:                       `"login" is missing`,
		`addresses: [], ` + byToken:  "the list is empty",
		`addresses: [1], ` + byToken: "expected text",
		`addresses: ["https://a:8200"], ` + byToken:                                         "https needs ca",
		`addresses: ["http://vault.example.org:8200"], ` + byToken:                          "loopback",
		`addresses: ["http://localhost:8200"], ` + byToken:                                  "loopback",
		`addresses: ["a:8200"], ` + byToken:                                                 "https://host:port",
		`addresses: ["https://a"], ca: x, ` + byToken:                                       "https://host:port",
		`addresses: ["https://u:p@a:1"], ca: x, ` + byToken:                                 "https://host:port",
		`addresses: ["https://a:1/v1"], ca: x, ` + byToken:                                  "https://host:port",
		`addresses: ["https://a:1?x"], ca: x, ` + byToken:                                   "https://host:port",
		`addresses: ["ftp://a:1"], ca: x, ` + byToken:                                       "not https",
		secure + `, tls_skip_verify: true, ` + byToken:                                      `unknown member "tls_skip_verify"`,
		secure + `, timeout: 99ms, ` + byToken:                                              "not within",
		secure + `, cache: {ttl: 11m}, ` + byToken:                                          "not within",
		secure + `, cache: {keys: 0}, ` + byToken:                                           "not within",
		secure + `, create_keks: yes-please, ` + byToken:                                    "expected true or false",
		secure + `, kv: a//b, ` + byToken:                                                   "kv: ",
		secure + `, transit: "..", ` + byToken:                                              "transit: ",
		secure + `, path: "a?b", ` + byToken:                                                "path: ",
		secure + `, login: {}`:                                                              "exactly one of",
		secure + `, login: {token: {file: a}, kubernetes: {role: b}}`:                       "exactly one of",
		secure + `, login: {token: {token: hvs.x}}`:                                         `unknown member "token"`,
		secure + `, login: {approle: {role_id_file: a}}`:                                    `"secret_id_file" is missing`,
		secure + `, login: {certificate: {key: a}}`:                                         `"certificate" is missing`,
		`addresses: ["http://127.0.0.1:1"], login: {certificate: {certificate: a, key: b}}`: "needs https",
		secure + `, ` + byToken + `}, embedded: {path: a, kek: b`:                           "exactly one of",
	} {
		_, _, err := readVault(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "keyservice.yaml:4: ") {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	if _, _, err := read(t, beside+"store: {}\n"); err == nil || !strings.Contains(err.Error(), "exactly one of") {
		t.Error(err)
	}
}
