package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// certificate signs a template, so that what is tested is what x509 parses.
func certificate(t *testing.T, names []pkix.AttributeTypeAndValue, uris ...string) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{ExtraNames: names},
	}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func cn(values ...string) []pkix.AttributeTypeAndValue {
	var names []pkix.AttributeTypeAndValue
	for _, v := range values {
		names = append(names, pkix.AttributeTypeAndValue{Type: oidCommonName, Value: v})
	}
	return names
}

// [CL-API-002]
func TestPrincipals(t *testing.T) {
	for _, c := range []struct {
		name string
		leaf *x509.Certificate
		want string
	}{
		{"SPIFFE id", certificate(t, cn("ignored"), "spiffe://example.org/team/claims-writer"), "spiffe://example.org/team/claims-writer"},
		{"SPIFFE id beside other URIs", certificate(t, nil, "https://example.org/x", "spiffe://example.org/a"), "spiffe://example.org/a"},
		{"common name", certificate(t, cn("analytics-7")), "analytics-7"},
		{"common name beside other URIs", certificate(t, cn("Jürgen"), "https://example.org/x"), "Jürgen"},
		{"longest common name", certificate(t, cn(strings.Repeat("n", 512))), strings.Repeat("n", 512)},
	} {
		if got, err := FromCertificate(c.leaf, time.Now()); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// [CL-API-002]
func TestRefusedCertificates(t *testing.T) {
	organisation := []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: "Example"}}
	for name, leaf := range map[string]*x509.Certificate{
		"two SPIFFE ids":             certificate(t, cn("x"), "spiffe://example.org/a", "spiffe://example.org/b"),
		"the same SPIFFE id twice":   certificate(t, cn("x"), "spiffe://example.org/a", "spiffe://example.org/a"),
		"two in different case":      certificate(t, cn("x"), "spiffe://example.org/a", "SPIFFE://example.org/b"),
		"no trust domain":            certificate(t, cn("x"), "spiffe:///a"),
		"no path":                    certificate(t, cn("x"), "spiffe://example.org"),
		"path /":                     certificate(t, cn("x"), "spiffe://example.org/"),
		"trailing slash":             certificate(t, cn("x"), "spiffe://example.org/a/"),
		"empty segment":              certificate(t, cn("x"), "spiffe://example.org/a//b"),
		"dot segments":               certificate(t, cn("x"), "spiffe://example.org/a/../b"),
		"query":                      certificate(t, cn("x"), "spiffe://example.org/a?b=c"),
		"fragment":                   certificate(t, cn("x"), "spiffe://example.org/a#b"),
		"user":                       certificate(t, cn("x"), "spiffe://me@example.org/a"),
		"port":                       certificate(t, cn("x"), "spiffe://example.org:8443/a"),
		"percent escape":             certificate(t, cn("x"), "spiffe://example.org/%61"),
		"opaque":                     certificate(t, cn("x"), "spiffe:example.org/a"),
		"wildcard":                   certificate(t, cn("x"), "spiffe://example.org/*"),
		"SPIFFE id too long":         certificate(t, cn("x"), "spiffe://example.org/"+strings.Repeat("a", 500)),
		"no name":                    certificate(t, organisation),
		"two common names":           certificate(t, cn("a", "b")),
		"empty common name":          certificate(t, cn("")),
		"common name is a SPIFFE id": certificate(t, cn("spiffe://example.org/a")),
		"common name is a URI":       certificate(t, cn("x://y")),
		"common name too long":       certificate(t, cn(strings.Repeat("n", 513))),
		"newline in common name":     certificate(t, cn("a\nb")),
		"NUL in common name":         certificate(t, cn("a\x00b")),
		"direction mark":             certificate(t, cn("a\u202eb")),
	} {
		got, err := FromCertificate(leaf, time.Now())
		if r, ok := errors.AsType[*refusal.Error](err); !ok || got != "" || r.Code != refusal.Unauthenticated {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A connection may outlive the certificate that it was made with.
func TestExpiry(t *testing.T) {
	leaf := certificate(t, cn("a"))
	for _, now := range []time.Time{leaf.NotAfter.Add(time.Second), leaf.NotBefore.Add(-time.Second)} {
		if got, err := FromCertificate(leaf, now); err == nil {
			t.Errorf("%s at %s", got, now)
		}
	}
	if _, err := FromCertificate(leaf, leaf.NotAfter); err != nil {
		t.Error(err)
	}
}
