// A CA and certificates for tests, made at test time.

package testservice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// PKI is a CA in a folder of the test.
type PKI struct {
	Dir string
	CA  string // PEM file

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Pair names the PEM files of a certificate and its key.
type Pair struct{ Certificate, Key string }

// NewPKI makes a CA.
func NewPKI(t testing.TB) *PKI {
	t.Helper()
	p := &PKI{Dir: t.TempDir()}
	p.CA = filepath.Join(p.Dir, "ca.pem")
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	p.certificate, p.key = p.sign(t, template, p.CA, filepath.Join(p.Dir, "ca-key.pem"))
	return p
}

// Issue makes a certificate for a SPIFFE id that serves clients and servers on this machine, and holds for so long.
func (p *PKI) Issue(t testing.TB, name, spiffe string, life time.Duration) Pair {
	t.Helper()
	id, err := url.Parse(spiffe)
	if err != nil {
		t.Fatal(err)
	}
	pair := Pair{filepath.Join(p.Dir, name+".pem"), filepath.Join(p.Dir, name+"-key.pem")}
	p.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true, URIs: []*url.URL{id},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 77, 0, 1), net.IPv4(10, 77, 0, 2), net.ParseIP("fd00:77::2")},
	}, pair.Certificate, pair.Key)
	return pair
}

func (p *PKI) sign(t testing.TB, template *x509.Certificate, certificate, key string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := p.certificate, p.key
	if parent == nil {
		parent, signer = template, made
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, made.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	write(t, certificate, "CERTIFICATE", der)
	write(t, key, "PRIVATE KEY", keyDER)
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, made
}

// write replaces a file whole, as programs that watch it expect.
func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}
