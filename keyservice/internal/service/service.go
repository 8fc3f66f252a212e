// Package service is what the key service does, without HTTP: it asks the policy, the store and the audit log, in this
// order, and answers only what the audit log has.
package service

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/certificate"
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
)

// Meter counts what happened.
type Meter interface {
	// Released counts data keys given out, by action and scope.
	Released(action policy.Action, scope string, keys int)
	// KidRefused counts kids that stand in an answer with a code.
	KidRefused(code refusal.Code)
	// Encrypted counts what clients say they encrypted under a scope's keys.
	Encrypted(scope string, records, bytes int64)
	// AuditTook tells how long a record took to be on disk, or to fail.
	AuditTook(d time.Duration, err error)
}

// Policies gives the policy in force.
type Policies interface {
	Current() *policy.Policy
}

// Service answers calls. It is safe for concurrent use. What it keeps between calls is in State.
type Service struct {
	*State

	Policies Policies
	Store    store.Store
	Audit    audit.Log
	Meter    Meter
	Log      *slog.Logger

	Signer certificate.Signer // nil: no certificates are given
	Tokens *token.Book        // nil: no bootstrap tokens are taken
}

// Call is what is known of a call before its body is read.
type Call struct {
	RequestID string
	Principal string // empty when it is not known
	Remote    string

	Certificate *x509.Certificate // nil: none was shown
	Claims      map[string]any    // of the JWT; nil: none was shown
	Bootstrap   *token.Hash       // of the bootstrap token; nil: none was shown
}

// Asker is the caller as the policy sees him.
func (c Call) Asker() policy.Asker {
	remote, _ := netip.ParseAddrPort(c.Remote) // else unknown: a condition on it then refuses
	return policy.Asker{Principal: c.Principal, Remote: remote.Addr(), Certificate: c.Certificate, Claims: c.Claims}
}

// Record begins an audit record of this call.
func (c Call) Record(action policy.Action) audit.Record {
	return audit.Record{RequestID: c.RequestID, Principal: c.Principal, Remote: c.Remote, Action: string(action)}
}

// write puts records into the audit log; when that fails, the refusal to answer with is returned [CL-API-013].
func (s *Service) write(ctx context.Context, records ...audit.Record) error {
	start := time.Now()
	for i := range records {
		records[i].Time = start
	}
	// The record is written also when the caller hung up meanwhile.
	err := s.Audit.Write(context.WithoutCancel(ctx), records...)
	s.Meter.AuditTook(time.Since(start), err)
	if err != nil {
		return refusal.Because(refusal.AuditUnavailable, err, "the audit log cannot be written, so nothing is given out; look at its disk")
	}
	return nil
}

// Refuse records a refusal and gives the error to answer with: cause, or audit-unavailable.
func (s *Service) Refuse(ctx context.Context, record audit.Record, cause error) *refusal.Error {
	refused := asRefusal(cause)
	record.Outcome, record.Code = audit.Refused, string(refused.Code)
	if err := s.write(ctx, record); err != nil {
		return asRefusal(err)
	}
	return refused
}

func asRefusal(err error) *refusal.Error {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r
	}
	if errors.Is(err, store.ErrUnavailable) {
		return refusal.Because(refusal.Unavailable, err, "the key store is not available now; the key service's log has more under this request_id")
	}
	return refusal.Because(refusal.Internal, err, "the key service failed; its log has more under this request_id")
}

// unwrapOne unwraps one key. The caller wipes it.
func (s *Service) unwrapOne(ctx context.Context, r store.Record) (*datakey.Key, error) {
	keys, err := s.Store.Unwrap(ctx, []store.Record{r})
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}
