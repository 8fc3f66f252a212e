// Who is known by what, as the configuration says.

package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/cipherlane/cipherlane/keyservice/internal/certificate"
	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
)

func (s *Server) openIdentity(ctx context.Context) (err error) {
	s.callers = &identity.Verifier{}
	if s.cfg.JWT != nil {
		if s.callers.JWT, err = identity.NewJWT(*s.cfg.JWT, s.log); err != nil {
			return err
		}
	}
	c := s.cfg.Certificates
	if c == nil {
		return nil
	}
	if c.BootstrapTokens {
		s.callers.Tokens = &token.Book{Store: s.store}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if s.signer, err = s.openSigner(ctx, c); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}

// openSigner gives no signer with an error: a nil *certificate.Embedded must not become a non-nil Signer.
func (s *Server) openSigner(ctx context.Context, c *config.Certificates) (certificate.Signer, error) {
	if c.CA == config.CAEmbedded {
		opened, err := certificate.Open(ctx, s.store)
		if err != nil {
			return nil, err
		}
		return opened, nil
	}
	inVault, ok := s.store.(*vault.Store)
	if !ok {
		return nil, errors.New("ca: vault needs store.vault")
	}
	opened, err := certificate.OpenVault(ctx, inVault.PKI(c.Mount, c.Role, c.ServerRole))
	if err != nil {
		return nil, err
	}
	return opened, nil
}
