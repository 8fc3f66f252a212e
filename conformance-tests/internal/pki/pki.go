// Package pki makes a CA and short-lived certificates for one run, in files that only this user can read.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	life = 24 * time.Hour
	// For clients whose clocks are an hour behind.
	backdated = 2 * time.Hour
)

// Validity is from when until when a certificate is valid, counted from now.
type Validity struct{ From, Until time.Duration }

// Of the certificates of servers.
var (
	Sound   = Validity{-backdated, life}
	Expired = Validity{-life, -time.Minute}
	New     = Validity{-5 * time.Minute, life}       // not yet valid where the clock is an hour behind
	Old     = Validity{-backdated, 10 * time.Minute} // not valid any more where it is an hour ahead
)

// Authority signs certificates and writes them into a folder.
type Authority struct {
	folder string
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
}

// NewAuthority makes a CA; its certificate is CAFile.
func NewAuthority(folder string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate("conformance CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &Authority{folder, key, cert}
	return a, writePEM(a.CAFile(), "CERTIFICATE", der)
}

// CAFile is the path of the CA's certificate.
func (a *Authority) CAFile() string { return filepath.Join(a.folder, "ca.pem") }

// Pool holds the CA.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Client makes NAME.pem and NAME-key.pem for the principal spiffe://conformance/NAME.
func (a *Authority) Client(name string) (certificate, key string, err error) {
	template := newTemplate(name)
	template.URIs = []*url.URL{{Scheme: "spiffe", Host: "conformance", Path: "/" + name}}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(name, template)
}

// Server makes a certificate for 127.0.0.1.
func (a *Authority) Server(valid Validity) (tls.Certificate, error) {
	template := newTemplate("localhost")
	template.NotBefore, template.NotAfter = time.Now().Add(valid.From), time.Now().Add(valid.Until)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost"}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	certificate, key, err := a.issue("server", template)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(certificate, key)
}

func (a *Authority) issue(name string, template *x509.Certificate) (certificate, keyFile string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return "", "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", err
	}
	certificate, keyFile = filepath.Join(a.folder, name+".pem"), filepath.Join(a.folder, name+"-key.pem")
	if err := writePEM(certificate, "CERTIFICATE", der); err != nil {
		return "", "", err
	}
	return certificate, keyFile, writePEM(keyFile, "PRIVATE KEY", secret)
}

func newTemplate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-backdated), NotAfter: time.Now().Add(life),
	}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
