// The CA: what it signs, its rollover, and its end.

package certificate

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// documents keeps one document in memory, as a store would.
type documents struct {
	mu      sync.Mutex
	data    []byte
	version int
}

func (d *documents) ReadDocument(context.Context, string, string) ([]byte, int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]byte(nil), d.data...), d.version, nil
}

func (d *documents) WriteDocument(_ context.Context, _, _ string, version int, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if version != d.version {
		return store.ErrConflict
	}
	d.data, d.version = append([]byte(nil), data...), version+1
	return nil
}

func issue(t *testing.T, s Signer, principal string) *x509.Certificate {
	t.Helper()
	r, err := ParseRequest(csr(p256(), nil), principal, noServers)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := Issue(t.Context(), s, r, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(issued.Chain)
	if len(rest) > 0 {
		t.Fatal("more than the leaf")
	}
	return must(x509.ParseCertificate(block.Bytes))
}

// [CL-IDN-022] [CL-IDN-025]
func TestNamesAndLife(t *testing.T) {
	ca := must(Open(t.Context(), &documents{}))
	long := "spiffe://example.org/" + strings.Repeat("a", 100)
	for principal, cn := range map[string]string{alice: "alice", "batch-7": "batch-7", "Jürgen": "Jürgen", long: strings.Repeat("a", 64)} {
		leaf := issue(t, ca, principal)
		if got, err := identity.FromCertificate(leaf, time.Now()); err != nil || got != principal {
			t.Errorf("%s: %q %v", principal, got, err)
		}
		if leaf.Subject.CommonName != cn || len(leaf.Subject.Names) != 1 || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 || leaf.IsCA {
			t.Errorf("%s: %s %+v", principal, leaf.Subject, leaf.DNSNames)
		}
		if life := time.Until(leaf.NotAfter); life > time.Hour || life < time.Hour-5*time.Second || time.Since(leaf.NotBefore) < Backdate {
			t.Errorf("%s: from %s to %s", principal, leaf.NotBefore, leaf.NotAfter)
		}
	}
	if _, err := ParseRequest(csr(p256(), nil), strings.Repeat("ü", 65), noServers); err == nil {
		t.Error("a common name of 65 characters")
	}
	for _, principal := range []string{"https://example.org/x"} {
		r := &Request{Principal: principal, publicKey: p256().Public()}
		if _, err := Issue(t.Context(), ca, r, time.Hour); err == nil {
			t.Errorf("%s: signed", principal)
		}
	}
}

// bent is a CA that gives something else than it was asked for.
type bent struct {
	*Embedded

	change func(template *x509.Certificate) (parent *authority)
	key    any
}

func (b *bent) Sign(_ context.Context, r *Request, lifetime time.Duration) ([]*x509.Certificate, error) {
	a := b.state.Load().current
	template := must(a.sign(r, lifetime, time.Now()))
	if parent := b.change(template); parent != nil {
		a = parent
	}
	key := r.publicKey
	if b.key != nil {
		key = b.key
	}
	template.ExtraExtensions = nil
	der := must(x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key))
	return []*x509.Certificate{must(x509.ParseCertificate(der))}, nil
}

// [CL-IDN-023] What a CA gives is handed on only if it is what was asked for.
func TestAnswersOfTheCA(t *testing.T) {
	ca := must(Open(t.Context(), &documents{}))
	foreign := must(newAuthority(time.Now()))
	for name, c := range map[string]*bent{
		"another key":       {key: p256().Public()},
		"another principal": {change: func(c *x509.Certificate) *authority { c.URIs = []*url.URL{uri("spiffe://example.org/bob")}; return nil }},
		"another CN":        {change: func(c *x509.Certificate) *authority { c.RawSubject, c.Subject.CommonName = nil, "bob"; return nil }},
		"organisation": {change: func(c *x509.Certificate) *authority {
			c.RawSubject, c.Subject.Organization = nil, []string{"Claims"}
			return nil
		}},
		"no URI":       {change: func(c *x509.Certificate) *authority { c.URIs = nil; return nil }},
		"one more URI": {change: func(c *x509.Certificate) *authority { c.URIs = append(c.URIs, uri("https://example.org")); return nil }},
		"DNS name":     {change: func(c *x509.Certificate) *authority { c.DNSNames = []string{"broker"}; return nil }},
		"CA":           {change: func(c *x509.Certificate) *authority { c.IsCA = true; return nil }},
		"server": {change: func(c *x509.Certificate) *authority {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			return nil
		}},
		"server too": {change: func(c *x509.Certificate) *authority {
			c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
			return nil
		}},
		"any use":            {change: func(c *x509.Certificate) *authority { c.ExtKeyUsage = nil; return nil }},
		"signs certificates": {change: func(c *x509.Certificate) *authority { c.KeyUsage |= x509.KeyUsageCertSign; return nil }},
		"too long":           {change: func(c *x509.Certificate) *authority { c.NotAfter = c.NotAfter.Add(time.Hour); return nil }},
		"over already":       {change: func(c *x509.Certificate) *authority { c.NotAfter = time.Now().Add(-time.Minute); return nil }},
		"not yet valid":      {change: func(c *x509.Certificate) *authority { c.NotBefore = time.Now().Add(time.Minute); return nil }},
		"foreign CA":         {change: func(*x509.Certificate) *authority { return foreign }},
	} {
		if c.change == nil {
			c.change = func(*x509.Certificate) *authority { return nil }
		}
		c.Embedded = ca
		r := must(ParseRequest(csr(p256(), nil), alice, noServers))
		if issued, err := Issue(t.Context(), c, r, time.Hour); err == nil {
			t.Errorf("%s: handed on: %s", name, issued.Chain)
		}
	}
	straight := &bent{Embedded: ca, change: func(*x509.Certificate) *authority { return nil }}
	if _, err := Issue(t.Context(), straight, must(ParseRequest(csr(p256(), nil), alice, noServers)), time.Hour); err != nil {
		t.Error("the test itself:", err)
	}
}

func trusts(cas []*x509.Certificate, leaf *x509.Certificate) bool {
	_, err := leaf.Verify(x509.VerifyOptions{Roots: poolOf(cas), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// [CL-IDN-024] Both CAs are trusted from before the next one signs until the certificates of the last have ended.
func TestRollover(t *testing.T) {
	d := &documents{}
	ca, replica := must(Open(t.Context(), d)), must(Open(t.Context(), d))
	before := issue(t, ca, alice)
	if err := ca.Finish(t.Context(), true); !errors.Is(err, ErrRollover) {
		t.Fatal("finished what has not begun:", err)
	}
	if err := ca.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ca.Begin(t.Context()); !errors.Is(err, ErrRollover) {
		t.Fatal("begun twice:", err)
	}
	between := issue(t, ca, alice)
	cas := ca.CAs()
	if bytes.Equal(cas[0].RawSubject, cas[1].RawSubject) {
		t.Fatal("two CAs have one name:", cas[0].Subject)
	}
	if len(cas) != 2 || between.CheckSignatureFrom(cas[0]) != nil || !trusts(cas[:1], before) {
		t.Fatal("the next CA signs before it is known")
	}
	if err := ca.Finish(t.Context(), false); !errors.Is(err, ErrRollover) {
		t.Fatal("finished too early:", err)
	}
	if err := ca.Finish(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	after := issue(t, ca, alice)
	if cas = ca.CAs(); len(cas) != 2 || !trusts(cas, before) || !trusts(cas[:1], after) || trusts(cas[:1], before) {
		t.Fatal("not both are trusted, or the old one still signs")
	}
	if changed, err := replica.Reload(t.Context()); !changed || err != nil || !trusts(replica.CAs(), after) {
		t.Fatal("a replica does not follow:", err)
	}
	s := ca.state.Load()
	if late := s.trusted(time.Now().Add(Overlap)); len(late) != 1 || trusts(late, before) {
		t.Error("the old CA is trusted for ever")
	}
	if s.previous.key != nil {
		t.Error("the old CA's key is kept")
	}
	if err := (&state{current: s.current, next: must(newAuthority(time.Now().Add(-Overlap)))}).finish(time.Now(), false); err != nil {
		t.Error("after the overlap:", err)
	}
}

// Two replicas change at once: none of the changes gets lost.
func TestRolloverAtOnce(t *testing.T) {
	d := &documents{}
	ca := must(Open(t.Context(), d))
	results := make(chan error, 20)
	ctx := context.WithoutCancel(t.Context())
	for range cap(results) {
		go func() { results <- ca.Begin(ctx) }()
	}
	begun := 0
	for range cap(results) {
		if err := <-results; err == nil {
			begun++
		} else if !errors.Is(err, ErrRollover) {
			t.Error(err)
		}
	}
	if begun != 1 {
		t.Errorf("%d begun", begun)
	}
}

func TestDamagedCA(t *testing.T) {
	d := &documents{}
	_ = must(Open(t.Context(), d))
	_ = must(Open(t.Context(), d)).Begin(t.Context())
	good := string(d.data)
	other := &documents{}
	_ = must(Open(t.Context(), other))
	key := func(text string) string {
		_, rest, _ := strings.Cut(text, `"key":"`)
		key, _, _ := strings.Cut(rest, `"`)
		return key
	}
	for name, data := range map[string]string{
		"empty": "", "not JSON": "x", "no CA": "{}", "unknown member": `{"x":1,` + good[1:], "cut": good[:len(good)/2],
		"another key": strings.Replace(good, key(good), key(string(other.data)), 1),
		"no key":      strings.Replace(good, key(good), "", 1),
	} {
		d.data = []byte(data)
		if _, err := Open(t.Context(), d); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// A certificate does not outlive its CA.
func TestEndOfTheCA(t *testing.T) {
	old := must(newAuthority(time.Now().Add(-CALife + 30*time.Minute)))
	r := must(ParseRequest(csr(ed(), nil), alice, noServers))
	leaf := must(old.sign(r, time.Hour, time.Now()))
	if !leaf.NotAfter.Equal(old.certificate.NotAfter) {
		t.Error("it ends at", leaf.NotAfter)
	}
	if _, err := old.sign(r, time.Hour, time.Now().Add(time.Hour)); err == nil {
		t.Error("a CA that has ended signs")
	}
	if leaf.SerialNumber.Cmp(big.NewInt(1<<62)) < 0 {
		t.Error("a small serial number:", leaf.SerialNumber)
	}
}
