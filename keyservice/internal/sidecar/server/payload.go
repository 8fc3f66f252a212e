// Payload encryption, where it is configured.

package server

import (
	"crypto/tls"
	"fmt"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/payload"
)

// openPayload makes the handler. It asks for keys with the sidecar's own certificate, the one of the moment.
func (s *Server) openPayload() error {
	p := s.cfg.Payload
	if p == nil {
		return nil
	}
	cas, err := files.ReadCAs(p.CA)
	if err != nil {
		return fmt.Errorf("payload.ca: %w", err)
	}
	s.payload, err = payload.New(payload.Options{
		Addresses: p.URLs, Keys: keys.Defaults(), Action: payload.Action(p.FailureAction), MaxPlaintext: p.MaxPlaintext, BindKey: p.BindsKey,
		Memory: s.cfg.Limits.Memory,
		Log:    s.log, Metrics: s.metrics.registry,
		TLS: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: cas,
			GetClientCertificate: s.ownCertificate,
		},
	})
	return err
}
