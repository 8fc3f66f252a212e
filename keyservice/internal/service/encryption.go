// Encryption keys.

package service

import (
	"context"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/usage"
)

// Usage is what a client encrypted under a key since its last call. Bytes are of plaintext.
type Usage struct {
	Kid     datakey.ID
	Records int64
	Bytes   int64
}

func (u *Usage) counts() usage.Counts { return usage.Counts{Records: u.Records, Bytes: u.Bytes} }

// EncryptionKey is the answer to a producer. Key is nil unless the mode is encrypt; the caller wipes it.
type EncryptionKey struct {
	Mode  policy.Mode
	Scope string
	Kid   datakey.ID
	Key   *datakey.Key
	Lease policy.Lease
}

// EncryptionKey gives the current key for a topic, or says that the topic is clear or forbidden. report may be nil.
//
// Errors: not-authorized, topic-unknown, internal, audit-unavailable.
func (s *Service) EncryptionKey(ctx context.Context, call Call, topic string, report *Usage) (EncryptionKey, error) {
	record := call.Record(policy.ActionEncrypt)
	record.Topic = topic
	decision, err := s.Policies.Current().Topic(call.Asker(), policy.ActionEncrypt, topic)
	if err != nil {
		return EncryptionKey{}, s.Refuse(ctx, record, err)
	}
	record.Scope, record.Mode = decision.Scope, string(decision.Mode)
	if err := s.checkRevoked(call, decision.Scope, policy.ActionEncrypt); err != nil {
		return EncryptionKey{}, s.Refuse(ctx, record, err)
	}
	own, err := s.isOwn(ctx, decision.Scope, report)
	if err != nil {
		return EncryptionKey{}, s.Refuse(ctx, record, err)
	}
	if !own {
		report = nil
	}
	answer, err := s.encryptionKey(ctx, call, decision, report)
	if err != nil {
		return EncryptionKey{}, s.Refuse(ctx, record, err)
	}
	return s.release(ctx, record, answer, report)
}

// isOwn tells whether a report is about a key of the scope. After a change of the policy an honest client may still
// hold another's, and its call for the new key must not fail for it.
func (s *Service) isOwn(ctx context.Context, scope string, report *Usage) (bool, error) {
	if report == nil {
		return false, nil
	}
	found, err := s.Store.Lookup(ctx, scope, []datakey.ID{report.Kid})
	if err != nil {
		return false, err
	}
	own := found[report.Kid].Scope == scope
	if !own {
		s.Log.Warn("usage of a key of another scope is not counted", "scope", scope, "kid", report.Kid.String())
	}
	return own, nil
}

func (s *Service) encryptionKey(ctx context.Context, call Call, d policy.Decision, report *Usage) (EncryptionKey, error) {
	if d.Mode != policy.Encrypt {
		return EncryptionKey{Mode: d.Mode, Lease: d.Lease}, nil
	}
	current, err := s.freshKey(ctx, call, d.Scope, report)
	if err != nil {
		return EncryptionKey{}, err
	}
	key, err := s.unwrapOne(ctx, current)
	if err != nil {
		return EncryptionKey{}, err
	}
	return EncryptionKey{Mode: d.Mode, Scope: current.Scope, Kid: current.ID, Key: key, Lease: d.Lease}, nil
}

// release writes the audit record and only then lets the answer go.
func (s *Service) release(ctx context.Context, record audit.Record, answer EncryptionKey, report *Usage) (EncryptionKey, error) {
	record.Outcome = audit.Allowed
	if answer.Key != nil {
		record.Kids = []string{answer.Kid.String()}
	}
	if err := s.write(ctx, record); err != nil {
		if answer.Key != nil {
			answer.Key.Wipe()
		}
		return EncryptionKey{}, err
	}
	if answer.Key != nil {
		s.Meter.Released(policy.ActionEncrypt, answer.Scope, 1)
		s.grant(record, answer.Lease)
	}
	if report != nil { // now, not before: a client reports again what a call that failed reported
		s.Usage.Report(record.Scope, report.Kid, report.counts())
		s.Meter.Encrypted(record.Scope, report.Records, report.Bytes)
	}
	return answer, nil
}
