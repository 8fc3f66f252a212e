// Package trust holds the certificate that the sidecar shows and the CAs that its peers must chain to, for as long as they hold, and
// makes TLS configurations of them. Where they come from (files, the key service) it does not know.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// ErrEnded means that the sidecar has no certificate that holds: nothing is sent or taken [CL-SDC-020].
var ErrEnded = errors.New("the sidecar's certificate has ended, or there is none yet: see the log for why it was not renewed")

// Material is what a source of certificates gives.
type Material struct {
	Certificate tls.Certificate // with Leaf
	CAs         *x509.CertPool
}

// Source gives the TLS configurations of now. It is safe for concurrent use; make it with New.
type Source struct {
	peers    *policy.Principals
	protocol string
	current  atomic.Pointer[generation]
	server   *tls.Config // one for all: it holds the keys of the tickets with which sessions are resumed
}

// generation is a certificate with what belongs to it: sessions that were begun with it are not resumed with the next one.
type generation struct {
	client, server *tls.Config
	chosen         *tls.Config // server, for clients that offer the protocol
	ends           time.Time
}

// New makes one without a certificate. peers are the principals that peers must have one of; nil means that a server's name is enough,
// and that any client whose certificate verifies is taken. protocol, if any, is chosen with clients that offer it (ALPN); with all others none
// is, whatever they offer.
func New(peers *policy.Principals, protocol string) *Source {
	s := &Source{peers: peers, protocol: protocol}
	s.server = &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			g, err := s.valid()
			switch {
			case err != nil:
				return nil, err
			case protocol != "" && slices.Contains(hello.SupportedProtos, protocol):
				return g.chosen, nil
			}
			return g.server, nil
		},
	}
	return s
}

// sessions is how many TLS sessions are remembered, to be resumed.
const sessions = 256

// Set makes m the material of all handshakes from now on.
func (s *Source) Set(m Material) {
	base := tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{m.Certificate},
		DynamicRecordSizingDisabled: true, VerifyConnection: s.verify,
	}
	client, server := base.Clone(), base.Clone()
	client.RootCAs, client.ClientSessionCache = m.CAs, tls.NewLRUClientSessionCache(sessions)
	server.ClientCAs, server.ClientAuth = m.CAs, tls.RequireAndVerifyClientCert
	chosen := server.Clone()
	chosen.NextProtos = []string{s.protocol}
	s.current.Store(&generation{client, server, chosen, m.Certificate.Leaf.NotAfter})
}

// Generation is another one after each Set.
func (s *Source) Generation() any { return s.current.Load() }

// Ends tells when the certificate ends; the zero time if there is none.
func (s *Source) Ends() time.Time {
	if g := s.current.Load(); g != nil {
		return g.ends
	}
	return time.Time{}
}

func (s *Source) valid() (*generation, error) {
	g := s.current.Load()
	if g == nil || time.Now().After(g.ends) {
		return nil, ErrEnded
	}
	return g, nil
}

// Client gives the configuration for a handshake with a server of that name, and when its certificate ends.
//
// Errors: ErrEnded.
func (s *Source) Client(serverName string) (*tls.Config, time.Time, error) {
	g, err := s.valid()
	if err != nil {
		return nil, time.Time{}, err
	}
	cfg := g.client.Clone()
	cfg.ServerName = serverName
	return cfg, g.ends, nil
}

// Server gives the configuration for handshakes with clients: each goes by the certificate and the CAs of its time.
func (s *Source) Server() *tls.Config { return s.server }

// verify checks who the peer is; crypto/tls has verified its chain and, of a server, its name.
func (s *Source) verify(state tls.ConnectionState) error {
	if s.peers == nil {
		return nil
	}
	name, err := identity.FromCertificate(state.PeerCertificates[0], time.Now())
	if err != nil {
		return err
	}
	if !s.peers.Match(name) {
		return fmt.Errorf("the peer is %q, which tls.peers does not name", name)
	}
	return nil
}
