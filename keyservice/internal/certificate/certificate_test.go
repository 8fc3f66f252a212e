package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

const alice = "spiffe://example.org/team/alice"

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func p256() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func ed() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

func csr(key crypto.Signer, change func(*x509.CertificateRequest)) string {
	template := &x509.CertificateRequest{}
	if change != nil {
		change(template)
	}
	return pemOf(must(x509.CreateCertificateRequest(rand.Reader, template, key)))
}

func pemOf(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// noServers is the grant of somebody who may have no name of a server.
var noServers policy.ServerNames

// brokers gives what a grant with server_names allows.
func brokers(t *testing.T) policy.ServerNames {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(`version: 1
topics: [{topics: [t], mode: clear}]
grants: [{principals: ["`+alice+`"], actions: [certificate], server_names: ["broker-*.example.org", "?.kafka", localhost, 127.0.0.1, "::1"]}]`))
	if err != nil {
		t.Fatal(err)
	}
	granted, err := p.Certificate(policy.Asker{Principal: alice})
	if err != nil {
		t.Fatal(err)
	}
	return granted.Servers
}

func uri(text string) *url.URL { return must(url.Parse(text)) }

// [CL-IDN-020] [CL-IDN-021]
func TestGoodRequests(t *testing.T) {
	usage := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 15}, Value: []byte{3, 2, 1, 6}} // keyCertSign: ignored
	for name, c := range map[string]struct{ principal, csr string }{
		"P-256":        {alice, csr(p256(), nil)},
		"Ed25519":      {alice, csr(ed(), nil)},
		"common name":  {alice, csr(p256(), func(r *x509.CertificateRequest) { r.Subject.CommonName = "alice" })},
		"id as CN":     {alice, csr(p256(), func(r *x509.CertificateRequest) { r.Subject.CommonName = alice })},
		"URI":          {alice, csr(p256(), func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri(alice)} })},
		"a CN's own":   {"batch-7", csr(p256(), func(r *x509.CertificateRequest) { r.Subject.CommonName = "batch-7" })},
		"extension":    {alice, csr(p256(), func(r *x509.CertificateRequest) { r.ExtraExtensions = []pkix.Extension{usage} })},
		"end of lines": {alice, strings.ReplaceAll(csr(p256(), nil), "\n", "\r\n")},
	} {
		if r, err := ParseRequest(c.csr, c.principal, noServers); err != nil || r.Principal != c.principal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// [CL-IDN-020] [CL-IDN-021]
func TestBadRequests(t *testing.T) {
	good := csr(p256(), nil)
	block, _ := pem.Decode([]byte(good))
	flipped := append([]byte{}, block.Bytes...)
	flipped[len(flipped)-1] ^= 1
	other := csr(ed(), nil)
	rfc822 := must(asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 8, Bytes: []byte{42}}})) // registeredID
	named := func(change func(*x509.CertificateRequest)) string { return csr(p256(), change) }
	const invalid, notAuthorized = refusal.RequestInvalid, refusal.NotAuthorized
	for name, c := range map[string]struct {
		csr  string
		code refusal.Code
	}{
		"empty":           {"", invalid},
		"not PEM":         {"csr", invalid},
		"DER":             {string(block.Bytes), invalid},
		"cut":             {good[:len(good)-40], invalid},
		"other block":     {strings.ReplaceAll(good, "CERTIFICATE REQUEST", "CERTIFICATE"), invalid},
		"two blocks":      {good + other, invalid},
		"text before":     {"x\n" + good, invalid},
		"text behind":     {good + "x", invalid},
		"header":          {strings.Replace(good, "-----\n", "-----\nA: b\n\n", 1), invalid},
		"not PKCS #10":    {pemOf([]byte{0x30, 0}), invalid},
		"trailing DER":    {pemOf(append(append([]byte{}, block.Bytes...), 0)), invalid},
		"too long":        {good + strings.Repeat("\n", 16<<10), invalid},
		"wrong signature": {pemOf(flipped), invalid},
		"RSA":             {csr(must(rsa.GenerateKey(rand.Reader, 2048)), nil), invalid},
		"weak RSA":        {csr(must(rsa.GenerateKey(rand.Reader, 1024)), nil), invalid},
		"P-384":           {csr(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), nil), invalid},
		"P-224":           {csr(must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)), nil), invalid},
		"another CN":      {named(func(r *x509.CertificateRequest) { r.Subject.CommonName = "bob" }), notAuthorized},
		"another URI":     {named(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri("spiffe://example.org/team/bob")} }), notAuthorized},
		"two URIs": {named(func(r *x509.CertificateRequest) {
			r.URIs = []*url.URL{uri(alice), uri("spiffe://example.org/operator")}
		}), notAuthorized},
		"URI in other case": {named(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri("spiffe://EXAMPLE.org/team/alice")} }), notAuthorized},
		"DNS name":          {named(func(r *x509.CertificateRequest) { r.DNSNames = []string{"alice"} }), notAuthorized},
		"address":           {named(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }), notAuthorized},
		"mail address":      {named(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"alice@example.org"} }), notAuthorized},
		"organisation":      {named(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"Claims"} }), notAuthorized},
		"other kind of name": {named(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: oidAltNames, Value: rfc822}}
		}), notAuthorized},
	} {
		r, err := ParseRequest(c.csr, alice, noServers)
		refused, ok := errors.AsType[*refusal.Error](err)
		if r != nil || !ok || refused.Code != c.code {
			t.Errorf("%s: %v; want %s", name, err, c.code)
		}
	}
	if _, err := ParseRequest(named(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri("spiffe://example.org/batch-7")} }), "batch-7", noServers); err == nil {
		t.Error("a common name got a URI")
	}
}
