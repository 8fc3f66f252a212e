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
	certificate, err := loadKeyPair(cfg)
	if err != nil {
		return nil, err
	}
	clients, err := loadCAs(cfg.ClientCA)
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

func loadKeyPair(cfg config.TLS) (tls.Certificate, error) {
	chain, err := files.ReadTrusted(cfg.Certificate, maxPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("server certificate: %w", err)
	}
	key, err := files.ReadSecret(cfg.Key, maxPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("server key: %w", err)
	}
	defer clear(key)
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("server certificate %s and key %s: %w", cfg.Certificate, cfg.Key, err)
	}
	return pair, nil
}

// loadCAs takes nothing but certificates: x509's own reader would pass over what it does not understand.
func loadCAs(path string) (*x509.CertPool, error) {
	rest, err := files.ReadTrusted(path, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	pool := x509.NewCertPool()
	for count := 0; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if count == 0 {
				return nil, fmt.Errorf("client CA: %s holds no certificate", path)
			}
			return pool, nil
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil || !ca.IsCA {
			return nil, fmt.Errorf("client CA: entry %d of %s is not a CA certificate", count+1, path)
		}
		pool.AddCert(ca)
	}
}
