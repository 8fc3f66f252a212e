package identityclient

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const sidecar = "spiffe://example.org/sidecar"

func open(t *testing.T, s *testservice.Authority, o Options) (*Client, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	o.URLs, o.CA, o.Log = []string{s.URL}, s.PKI.CA, slog.New(slog.NewTextHandler(log, nil))
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, log
}

// [CL-IDN-030] [CL-IDN-033] [CL-IDN-035] A token gives the first certificate, that one the next; the token is not sent again.
func TestTokenThenCertificate(t *testing.T) {
	s := testservice.StartAuthority(t, time.Minute)
	path := filepath.Join(t.TempDir(), "token")
	s.Token(t, path, sidecar)
	var given []Material
	c, log := open(t, s, Options{TokenFile: path, DNSNames: []string{"localhost", "127.0.0.1"}, Renewed: func(m Material) { given = append(given, m) }})
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
	s.Token(t, path, sidecar)
	if err := c.renew(t.Context()); err != nil {
		t.Errorf("[CL-IDN-036] a new token does not help: %v", err)
	}
}

// [CL-IDN-032] [CL-IDN-035] The certificate of a file is the first proof; a failed renewal keeps what there is.
func TestFileThenFailure(t *testing.T) {
	s := testservice.StartAuthority(t, time.Minute)
	pair := s.PKI.Issue(t, "sidecar", sidecar, time.Hour)
	c, _ := open(t, s, Options{Certificate: pair.Certificate, Key: pair.Key})
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
	c.o.URLs = []string{"https://127.0.0.1:1", s.URL}
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
