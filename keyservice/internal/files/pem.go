// PEM files of certificates.

package files

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

const maxPEM = 1 << 20

// ReadCAs reads a PEM file of CA certificates into a pool.
func ReadCAs(path string) (*x509.CertPool, error) {
	data, err := ReadTrusted(path, maxPEM)
	if err != nil {
		return nil, err
	}
	all, err := ParseCAs(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	pool := x509.NewCertPool()
	for _, ca := range all {
		pool.AddCert(ca)
	}
	return pool, nil
}

// ParseCAs takes nothing but CA certificates, and at least one: x509's own reader would pass over what it does not
// understand.
func ParseCAs(data []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			if len(all) == 0 {
				return nil, fmt.Errorf("it holds no certificate")
			}
			return all, nil
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil || !ca.IsCA {
			return nil, fmt.Errorf("entry %d is not a CA certificate", len(all)+1)
		}
		all = append(all, ca)
	}
}
