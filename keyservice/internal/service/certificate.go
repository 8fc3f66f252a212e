// Certificates, and the tokens with which the first one is had.

package service

import (
	"context"
	"errors"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/certificate"
	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
)

// Actions of the audit log that are not granted under the same name: both need admin.
const (
	ActionToken policy.Action = "token"
	ActionCA    policy.Action = "ca"
)

// Certificate gives the caller a certificate for the name that he has. A bootstrap token is used up when everything
// else is good, and stays so whatever happens then.
//
// Errors: not-found, not-authorized, request-invalid, unauthenticated, internal, audit-unavailable, key-service-unavailable.
func (s *Service) Certificate(ctx context.Context, call Call, csr string) (certificate.Issued, error) {
	record := call.Record(policy.ActionCertificate)
	request, lifetime, err := s.checkRequest(call, csr)
	if err != nil {
		return certificate.Issued{}, s.Refuse(ctx, record, err)
	}
	record.Outcome = audit.Begun
	if err := s.write(ctx, record); err != nil {
		return certificate.Issued{}, err
	}
	if err := s.redeem(ctx, call.Bootstrap); err != nil {
		return certificate.Issued{}, s.Refuse(ctx, record, err)
	}
	issued, err := certificate.Issue(ctx, s.Signer, request, lifetime)
	if err != nil {
		return certificate.Issued{}, s.Refuse(ctx, record, err)
	}
	record.Outcome, record.Serial = audit.Allowed, issued.Serial
	if err := s.write(ctx, record); err != nil {
		return certificate.Issued{}, err
	}
	return issued, nil
}

func (s *Service) checkRequest(call Call, csr string) (*certificate.Request, time.Duration, error) {
	if s.Signer == nil {
		return nil, 0, refusal.New(refusal.NotFound, "this key service signs no certificates (certificates, in its configuration)")
	}
	granted, err := s.Policies.Current().Certificate(call.Asker())
	if err != nil {
		return nil, 0, err
	}
	request, err := certificate.ParseRequest(csr, call.Principal, granted.Servers)
	return request, granted.Lifetime, err
}

func (s *Service) redeem(ctx context.Context, hash *token.Hash) error {
	if hash == nil {
		return nil
	}
	err := s.Tokens.Redeem(ctx, *hash)
	if errors.Is(err, token.ErrNone) {
		return identity.NoSuchToken()
	}
	return err
}

// NewToken makes a bootstrap token for a principal. Its text is in the answer and nowhere else.
//
// Errors: not-found, not-authorized, request-invalid, internal, audit-unavailable, key-service-unavailable.
func (s *Service) NewToken(ctx context.Context, call Call, principal string, life time.Duration) (string, token.Token, error) {
	record := call.Record(ActionToken)
	record.Subject = principal
	if err := s.checkToken(call, principal); err != nil {
		return "", token.Token{}, s.Refuse(ctx, record, err)
	}
	text, hash := token.New()
	made := token.Token{Hash: hash, Principal: principal, Expires: time.Now().Add(life).Truncate(time.Second)}
	err := s.recorded(ctx, record, func() error { return s.Tokens.Add(ctx, made) })
	if err != nil {
		return "", token.Token{}, err
	}
	return text, made, nil
}

func (s *Service) checkToken(call Call, principal string) error {
	if s.Tokens == nil {
		return refusal.New(refusal.NotFound, "this key service takes no bootstrap tokens (certificates.bootstrap_tokens, in its configuration)")
	}
	if err := s.Policies.Current().Allows(call.Asker(), policy.ActionAdmin, ""); err != nil {
		return err
	}
	if err := identity.CheckName(principal); err != nil {
		return refusal.New(refusal.RequestInvalid, "principal: %v", err)
	}
	return nil
}

// recorded does something between two lines of the audit log, so that no change goes unrecorded.
func (s *Service) recorded(ctx context.Context, record audit.Record, do func() error) error {
	record.Outcome = audit.Begun
	if err := s.write(ctx, record); err != nil {
		return err
	}
	if err := do(); err != nil {
		return s.Refuse(ctx, record, err)
	}
	record.Outcome = audit.Allowed
	return s.write(ctx, record)
}

// RollCA begins or finishes the rollover of the embedded CA, and gives the CAs that are trusted then, the signing one first.
//
// Errors: not-found, not-authorized, request-invalid, internal, audit-unavailable, key-service-unavailable.
func (s *Service) RollCA(ctx context.Context, call Call, roll func(context.Context, *certificate.Embedded) error) ([]byte, error) {
	record := call.Record(ActionCA)
	embedded, ok := s.Signer.(*certificate.Embedded)
	err := s.Policies.Current().Allows(call.Asker(), policy.ActionAdmin, "")
	if err == nil && !ok {
		err = refusal.New(refusal.NotFound, "this key service has no CA of its own: roll over that of Vault there")
	}
	if err != nil {
		return nil, s.Refuse(ctx, record, err)
	}
	err = s.recorded(ctx, record, func() error {
		err := roll(ctx, embedded)
		if errors.Is(err, certificate.ErrRollover) {
			return refusal.New(refusal.RequestInvalid, "%v", err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return certificate.PEM(embedded.CAs()), nil
}
