// Mutual TLS.

package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

const maxPEM = 1 << 20

// loadTLS refuses callers without a certificate of the client CA in the handshake [CL-API-001].
func loadTLS(cfg config.TLS) (*tls.Config, error) {
	certificate, err := loadKeyPair("server", cfg.Certificate, cfg.Key)
	if err != nil {
		return nil, err
	}
	clients, err := loadCAs("client CA", cfg.ClientCA)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
	}, nil
}

// clientTLS is for calling a syslog server: it trusts one CA, and shows a certificate if one is configured.
func clientTLS(cfg config.Syslog) (*tls.Config, error) {
	roots, err := loadCAs("syslog CA", cfg.CA)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if cfg.Certificate == "" {
		return c, nil
	}
	pair, err := loadKeyPair("syslog", cfg.Certificate, cfg.Key)
	c.Certificates = []tls.Certificate{pair}
	return c, err
}

func loadKeyPair(of, certificate, keyFile string) (tls.Certificate, error) {
	chain, err := files.ReadTrusted(certificate, maxPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s certificate: %w", of, err)
	}
	key, err := files.ReadSecret(keyFile, maxPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s key: %w", of, err)
	}
	defer clear(key)
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s certificate %s and key %s: %w", of, certificate, keyFile, err)
	}
	return pair, nil
}

// loadCAs takes nothing but certificates: x509's own reader would pass over what it does not understand.
func loadCAs(of, path string) (*x509.CertPool, error) {
	rest, err := files.ReadTrusted(path, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	pool := x509.NewCertPool()
	for count := 0; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if count == 0 {
				return nil, fmt.Errorf("%s: %s holds no certificate", of, path)
			}
			return pool, nil
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil || !ca.IsCA {
			return nil, fmt.Errorf("%s: entry %d of %s is not a CA certificate", of, count+1, path)
		}
		pool.AddCert(ca)
	}
}
