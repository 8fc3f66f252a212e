// The CA and certificates of the folder.

package dev

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

const (
	trustDomain = "dev.cipherlane"
	caLife      = 365 * 24 * time.Hour
	leafLife    = 90 * 24 * time.Hour
	// renewBefore is how long a certificate must still hold to be used again.
	renewBefore = 24 * time.Hour
	// backdate allows for clocks that are behind.
	backdate = 5 * time.Minute
	maxPEM   = 64 << 10
)

func spiffeID(name string) string { return "spiffe://" + trustDomain + "/" + name }

// authority is the folder's CA.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func (f Folder) writeCertificates() error {
	ca, err := f.loadOrMakeCA()
	if err != nil {
		return err
	}
	if err := ca.ensure(filepath.Join(f.Dir, "server.pem"), filepath.Join(f.Dir, "server-key.pem"), serverTemplate()); err != nil {
		return err
	}
	for name, p := range f.Principals {
		template, err := clientTemplate(name)
		if err != nil {
			return err
		}
		if err := ca.ensure(p.Certificate, p.Key, template); err != nil {
			return err
		}
	}
	return nil
}

func (f Folder) loadOrMakeCA() (*authority, error) {
	keyPath := filepath.Join(f.Dir, "ca-key.pem")
	certificate, err := readCertificate(f.CA)
	if err != nil {
		return nil, err
	}
	if certificate != nil && time.Until(certificate.NotAfter) > leafLife {
		key, err := readKey(keyPath)
		return &authority{certificate, key}, err
	}
	ca := &authority{}
	ca.certificate, ca.key, err = issue(f.CA, keyPath, caTemplate(), nil)
	return ca, err
}

// ensure makes a certificate unless there is one of this CA that holds for a while.
func (a *authority) ensure(certificatePath, keyPath string, template *x509.Certificate) error {
	there, err := readCertificate(certificatePath)
	if err != nil {
		return err
	}
	if there != nil && there.CheckSignatureFrom(a.certificate) == nil && time.Until(there.NotAfter) > renewBefore {
		_, err := readKey(keyPath)
		return err
	}
	_, _, err = issue(certificatePath, keyPath, template, a)
	return err
}

// issue makes a key and a certificate and writes both; parent is nil for the CA itself.
func issue(certificatePath, keyPath string, template *x509.Certificate, parent *authority) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	signer := &authority{template, key}
	if parent != nil {
		signer = parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, key.Public(), signer.key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(writePEM(keyPath, "PRIVATE KEY", keyDER), writePEM(certificatePath, "CERTIFICATE", der)); err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
}

// writePEM writes a file of mode 0600 in place of the one that may be there.
func writePEM(path, kind string, der []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return files.CreateSecret(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// readCertificate gives nil for a file that is not there.
func readCertificate(path string) (*x509.Certificate, error) {
	data, err := files.ReadTrusted(path, maxPEM)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM certificate: remove it to have it made again", path)
	}
	return x509.ParseCertificate(block.Bytes)
}

func readKey(path string) (crypto.Signer, error) {
	data, err := files.ReadSecret(path, maxPEM)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM key: remove it and its certificate to have them made again", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s is not a signing key", path)
	}
	return signer, nil
}

func caTemplate() *x509.Certificate {
	t := template("Cipherlane development CA", caLife)
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	return t
}

func serverTemplate() *x509.Certificate {
	t := template("cipherlane-keyservice", leafLife)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.DNSNames = []string{"localhost"}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	return t
}

func clientTemplate(name string) (*x509.Certificate, error) {
	uri, err := url.Parse(spiffeID(name))
	if err != nil {
		return nil, err
	}
	t := template(name, leafLife)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	t.URIs = []*url.URL{uri}
	return t, nil
}

// template leaves the serial number to crypto/x509, which draws a random one.
func template(commonName string, life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: commonName},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
}
