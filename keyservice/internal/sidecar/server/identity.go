// Where the sidecar's certificate comes from.

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
)

func (s *Server) openTrust(context.Context) error {
	m, err := readFiles(s.cfg.TLS.CA, s.cfg.TLS.Certificate, s.cfg.TLS.Key)
	if err != nil {
		return err
	}
	s.trust.Set(m)
	return nil
}

// readFiles reads PEM files.
func readFiles(ca, certificate, key string) (trust.Material, error) {
	cas, err := files.ReadCAs(ca)
	if err != nil {
		return trust.Material{}, fmt.Errorf("tls.ca: %w", err)
	}
	cfg, err := operator.TLSConfig("", certificate, key)
	if err != nil {
		return trust.Material{}, fmt.Errorf("tls: %w", err)
	}
	pair, err := withLeaf(cfg.Certificates[0])
	return trust.Material{Certificate: pair, CAs: cas}, err
}

func withLeaf(pair tls.Certificate) (tls.Certificate, error) {
	if pair.Leaf != nil {
		return pair, nil
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	pair.Leaf = leaf
	return pair, err
}
