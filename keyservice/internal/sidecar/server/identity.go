// Where the sidecar's certificate comes from.

package server

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/identityclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
)

// openTrust uses the PEM files as they are, or the key service.
func (s *Server) openTrust(ctx context.Context) error {
	if s.cfg.Identity != nil {
		return s.openIdentity(ctx)
	}
	read := func() error {
		m, err := readFiles(s.cfg.TLS.CA, s.cfg.TLS.Certificate, s.cfg.TLS.Key)
		if err == nil {
			s.trust.Set(m)
		}
		return err
	}
	if err := read(); err != nil {
		return err
	}
	go s.watchFiles(ctx, read)
	return nil
}

// openIdentity gets certificates from the key service while the sidecar runs. It does not wait for the first: until then
// connections are refused and /readyz says why.
func (s *Server) openIdentity(ctx context.Context) error {
	i, t := s.cfg.Identity, s.cfg.TLS
	var err error
	s.identity, err = identityclient.Open(identityclient.Options{
		URLs: i.URLs, CA: i.CA, Certificate: t.Certificate, Key: t.Key, TokenFile: i.TokenFile, JWTFile: i.JWTFile, DNSNames: i.DNSNames, Log: s.log,
		Renewed: func(m identityclient.Material) { s.trust.Set(trust.Material{Certificate: m.Certificate, CAs: m.CAs}) },
	})
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	go s.identity.Run(ctx)
	return nil
}

// lookInterval is how long renewed files may go unnoticed.
const lookInterval = 2 * time.Second

// watchFiles reads the files again when one has changed. Files that are wrong leave the certificate as it is.
func (s *Server) watchFiles(ctx context.Context, read func() error) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	seen := s.stamps()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.stamps()
		if now == seen {
			continue
		}
		if err := read(); err != nil {
			s.log.Error("the renewed certificate cannot be used; the one before stays", "error", err)
		} else {
			s.log.Info("a renewed certificate is in use", "until", s.trust.Ends())
		}
		seen = now
	}
}

func (s *Server) stamps() (all [3]time.Time) {
	for i, path := range []string{s.cfg.TLS.CA, s.cfg.TLS.Certificate, s.cfg.TLS.Key} {
		if info, err := os.Stat(path); err == nil {
			all[i] = info.ModTime()
		}
	}
	return all
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
	return trust.Material{Certificate: cfg.Certificates[0], CAs: cas}, nil
}
