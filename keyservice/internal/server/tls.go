// Mutual TLS.

package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

const maxPEM = 1 << 20

// newTLS refuses callers without a certificate of a trusted CA in the handshake; only where tokens are taken may they
// come without one [CL-API-001]. Every handshake goes by the CAs that are trusted then.
func (s *Server) newTLS() (*tls.Config, error) {
	certificate, err := loadKeyPair("server", s.cfg.TLS.Certificate, s.cfg.TLS.Key)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if s.cfg.TakesTokens() {
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	s.tls.Store(cfg)
	if err := s.trust(); err != nil {
		return nil, err
	}
	outer := s.tls.Load().Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.tls.Load(), nil }
	return outer, nil
}

// trust takes over the CAs of clients: those of the file, and those that sign here. When nothing has changed, the
// configuration stays the same, and with it the sessions that can be resumed.
func (s *Server) trust() error {
	pool, err := loadCAs("client CA", s.cfg.TLS.ClientCA)
	if err != nil {
		return err
	}
	if s.signer != nil {
		for _, ca := range s.signer.CAs() {
			pool.AddCert(ca)
		}
	}
	old := s.tls.Load()
	if old.ClientCAs != nil && pool.Equal(old.ClientCAs) {
		return nil
	}
	fresh := old.Clone()
	fresh.ClientCAs = pool
	s.tls.Store(fresh)
	return nil
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
	key, err := files.ReadCredential(keyFile, maxPEM)
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

// loadCAs reads CAs; of says of what they are, for the error.
func loadCAs(of, path string) (*x509.CertPool, error) {
	pool, err := files.ReadCAs(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	return pool, nil
}
