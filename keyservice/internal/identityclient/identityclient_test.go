package identityclient

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
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
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const (
	sidecar = "spiffe://example.org/sidecar"
	admin   = "spiffe://example.org/admin"
)

const policyText = `version: 1
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

// service is a real key service in this process.
type service struct {
	url    string
	pki    *testservice.PKI
	client *http.Client // the admin's
}

func startService(t *testing.T) *service {
	t.Helper()
	pki := testservice.NewPKI(t)
	pair := pki.Issue(t, "keyservice", "spiffe://example.org/keyservice", time.Hour)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "policy.yaml"), policyText)
	write(t, filepath.Join(dir, "keyservice.yaml"), fmt.Sprintf(`listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
tls: {certificate: %s, key: %s, client_ca: %s}
policy: policy.yaml
store: {embedded: {path: keys.db, kek: kek.json}}
audit: {file: audit.jsonl}
certificates: {ca: embedded, bootstrap_tokens: true}
`, pair.Certificate, pair.Key, pki.CA))
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
		<-done
	})
	adminPair := pki.Issue(t, "admin", admin, time.Hour)
	adminTLS, err := operator.TLSConfig(pki.CA, adminPair.Certificate, adminPair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &service{"https://" + opened.Addresses().API.String(), pki, &http.Client{Transport: &http.Transport{TLSClientConfig: adminTLS}}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// token makes a bootstrap token and gives the file that holds it.
func (s *service) token(t *testing.T, path string) {
	t.Helper()
	response, err := s.client.Post(s.url+"/v1/tokens", "application/json", strings.NewReader(`{"principal": "`+sidecar+`", "expires_in": 60}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	var made struct{ Token string }
	if err := json.Unmarshal(data, &made); err != nil || made.Token == "" {
		t.Fatalf("%v %s", err, data)
	}
	write(t, path, made.Token+"\n")
}

func (s *service) open(t *testing.T, o Options) (*Client, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	o.URLs, o.CA, o.Log = []string{s.url}, s.pki.CA, slog.New(slog.NewTextHandler(log, nil))
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, log
}

// [CL-IDN-030] [CL-IDN-033] [CL-IDN-035] A token gives the first certificate, that one the next; the token is not sent again.
func TestTokenThenCertificate(t *testing.T) {
	s := startService(t)
	path := filepath.Join(t.TempDir(), "token")
	s.token(t, path)
	var given []Material
	c, log := s.open(t, Options{TokenFile: path, DNSNames: []string{"localhost", "127.0.0.1"}, Renewed: func(m Material) { given = append(given, m) }})
	if c.Principal() != "" {
		t.Fatal("a principal before the first certificate")
	}
	for range 2 {
		if err := c.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(given) != 2 || c.Principal() != sidecar {
		t.Fatal(len(given), c.Principal())
	}
	first, ok := given[0].Certificate.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || first.Equal(given[1].Certificate.PrivateKey) {
		t.Error("the key was used again")
	}
	if until := time.Until(c.current.Load().again); until > 40*time.Second || until < 33*time.Second {
		t.Errorf("renewal in %s, not after two thirds of a minute or up to a tenth earlier", until)
	}
	secret, _ := os.ReadFile(path)
	if strings.Contains(log.String(), strings.TrimSpace(string(secret))) {
		t.Error("the token is in the log")
	}
	c.current.Store(nil) // as if all had ended
	if err := c.renew(t.Context()); err == nil || !strings.Contains(err.Error(), "put a new one there") {
		t.Errorf("a used token: %v", err)
	}
	s.token(t, path)
	if err := c.renew(t.Context()); err != nil {
		t.Errorf("[CL-IDN-036] a new token does not help: %v", err)
	}
}

// [CL-IDN-032] [CL-IDN-035] The certificate of a file is the first proof; a failed renewal keeps what there is.
func TestFileThenFailure(t *testing.T) {
	s := startService(t)
	pair := s.pki.Issue(t, "sidecar", sidecar, time.Hour)
	c, _ := s.open(t, Options{Certificate: pair.Certificate, Key: pair.Key})
	if c.Principal() != sidecar {
		t.Fatal(c.Principal())
	}
	before := c.current.Load()
	c.o.URLs = []string{"https://127.0.0.1:1"}
	if err := c.renew(t.Context()); err == nil {
		t.Fatal("renewed by nobody")
	}
	if c.current.Load() != before {
		t.Fatal("a failed renewal changed the certificate")
	}
	c.o.URLs = []string{"https://127.0.0.1:1", s.url}
	if err := c.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(c.current.Load().Certificate.Leaf.NotAfter); left > time.Minute {
		t.Fatalf("still the certificate of the file: %s", left)
	}
}

// [CL-IDN-033] Answers that are refused.
func TestHostileAnswers(t *testing.T) {
	pki, other := testservice.NewPKI(t), testservice.NewPKI(t)
	mine := pki.Issue(t, "mine", sidecar, time.Hour)
	ended := pki.Issue(t, "ended", sidecar, -time.Minute)
	foreign := pki.Issue(t, "foreign", "spiffe://example.org/other", time.Hour)
	c, err := Open(Options{URLs: []string{"https://127.0.0.1:1"}, CA: pki.CA, Certificate: mine.Certificate, Key: mine.Key})
	if err != nil {
		t.Fatal(err)
	}
	text := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	keyOf := func(p testservice.Pair) *ecdsa.PrivateKey {
		pair, err := tls.LoadX509KeyPair(p.Certificate, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			t.Fatal("not an ECDSA key")
		}
		return key
	}
	good := answer{Certificate: text(mine.Certificate), CA: text(pki.CA), RefreshIn: 10, ExpiresIn: 15}
	if _, err := c.check(&good, keyOf(mine), time.Now()); err != nil {
		t.Fatal(err)
	}
	another, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	for name, bad := range map[string]struct {
		a    answer
		key  *ecdsa.PrivateKey
		want string
	}{
		"another key":       {good, another, "not for the key"},
		"another principal": {answer{Certificate: text(foreign.Certificate), CA: good.CA}, keyOf(foreign), "is for"},
		"ended":             {answer{Certificate: text(ended.Certificate), CA: good.CA}, keyOf(ended), "not valid at this time"},
		"another CA":        {answer{Certificate: good.Certificate, CA: text(other.CA)}, keyOf(mine), "unknown authority"},
		"no CA":             {answer{Certificate: good.Certificate}, keyOf(mine), "ca in the answer"},
		"no certificate":    {answer{CA: good.CA}, keyOf(mine), "certificate in the answer"},
		"a key in PEM":      {answer{Certificate: good.Certificate, CA: text(mine.Key)}, keyOf(mine), "PEM"},
		"more than PEM":     {answer{Certificate: good.Certificate + "x", CA: good.CA}, keyOf(mine), "PEM"},
		"seventeen":         {answer{Certificate: good.Certificate, CA: strings.Repeat(good.CA, 17)}, keyOf(mine), "1 to 16"},
		"more than 64 KiB":  {answer{Certificate: good.Certificate + strings.Repeat("\n", 64<<10), CA: good.CA}, keyOf(mine), "bytes"},
	} {
		if _, err := c.check(&bad.a, bad.key, time.Now()); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// [CL-IDN-036] When the certificate has ended, nothing is sent.
func TestEnded(t *testing.T) {
	pki := testservice.NewPKI(t)
	pair := pki.Issue(t, "mine", sidecar, time.Second)
	c, err := Open(Options{URLs: []string{"https://127.0.0.1:1"}, CA: pki.CA, Certificate: pair.Certificate, Key: pair.Key})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond)
	if _, err := c.TLSConfig().GetClientCertificate(nil); err == nil || c.Principal() != "" {
		t.Fatal("an ended certificate is used")
	}
	if err := c.renew(t.Context()); err == nil || !strings.Contains(err.Error(), "without a restart") {
		t.Fatal(err)
	}
}
