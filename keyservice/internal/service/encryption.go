// Encryption keys and rotation.

package service

import (
	"context"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// Usage is what a client encrypted under a key since its last call. Bytes are of plaintext.
type Usage struct {
	Kid     datakey.ID
	Records int64
	Bytes   int64
}

// EncryptionKey is the answer to a producer. Key is nil unless the mode is encrypt; the caller wipes it.
type EncryptionKey struct {
	Mode  policy.Mode
	Scope string
	Kid   datakey.ID
	Key   *datakey.Key
	Lease policy.Lease
}

// EncryptionKey gives the current key for a topic, or says that the topic is clear or forbidden. usage may be nil.
//
// Errors: not-authorized, topic-unknown, internal, audit-unavailable.
func (s *Service) EncryptionKey(ctx context.Context, call Call, topic string, usage *Usage) (EncryptionKey, error) {
	record := call.Record(policy.ActionEncrypt)
	record.Topic = topic
	decision, err := s.Policies.Current().Topic(call.Asker(), policy.ActionEncrypt, topic)
	if err != nil {
		return EncryptionKey{}, s.Refuse(ctx, record, err)
	}
	record.Scope, record.Mode = decision.Scope, string(decision.Mode)
	own, err := s.isOwn(ctx, decision.Scope, usage)
	if err != nil {
		return EncryptionKey{}, s.Refuse(ctx, record, err)
	}
	if !own {
		usage = nil
	}
	answer, err := s.encryptionKey(ctx, decision)
	if err != nil {
		return EncryptionKey{}, s.Refuse(ctx, record, err)
	}
	return s.release(ctx, record, answer, usage)
}

// isOwn tells whether a report is about a key of the scope. After a change of the policy an honest client may still
// hold another's, and its call for the new key must not fail for it.
func (s *Service) isOwn(ctx context.Context, scope string, usage *Usage) (bool, error) {
	if usage == nil {
		return false, nil
	}
	found, err := s.Store.Lookup(ctx, scope, []datakey.ID{usage.Kid})
	if err != nil {
		return false, err
	}
	own := found[usage.Kid].Scope == scope
	if !own {
		s.Log.Warn("usage of a key of another scope is not counted", "scope", scope, "kid", usage.Kid.String())
	}
	return own, nil
}

func (s *Service) encryptionKey(ctx context.Context, d policy.Decision) (EncryptionKey, error) {
	if d.Mode != policy.Encrypt {
		return EncryptionKey{Mode: d.Mode, Lease: d.Lease}, nil
	}
	current, err := s.Store.Current(ctx, d.Scope)
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
func (s *Service) release(ctx context.Context, record audit.Record, answer EncryptionKey, usage *Usage) (EncryptionKey, error) {
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
	}
	if usage != nil {
		s.Meter.Encrypted(record.Scope, usage.Records, usage.Bytes)
	}
	return answer, nil
}

// Rotate makes a new current key for a scope and gives its kid. The audit log learns of it before it is done, so that no
// rotation goes unrecorded, and again when it is.
//
// Errors: not-authorized, topic-unknown, internal, audit-unavailable.
func (s *Service) Rotate(ctx context.Context, call Call, scope string) (datakey.ID, error) {
	record := call.Record(policy.ActionRotate)
	record.Scope = scope
	if err := s.Policies.Current().Rotate(call.Asker(), scope); err != nil {
		return datakey.ID{}, s.Refuse(ctx, record, err)
	}
	record.Outcome = audit.Begun
	if err := s.write(ctx, record); err != nil {
		return datakey.ID{}, err
	}
	made, err := s.Store.Rotate(ctx, scope)
	if err != nil {
		return datakey.ID{}, s.Refuse(ctx, record, err)
	}
	return s.rotated(ctx, record, made)
}

func (s *Service) rotated(ctx context.Context, record audit.Record, made store.Record) (datakey.ID, error) {
	record.Outcome, record.Kids = audit.Allowed, []string{made.ID.String()}
	if err := s.write(ctx, record); err != nil {
		return datakey.ID{}, err
	}
	s.Log.Info("scope rotated", "scope", made.Scope, "kid", made.ID.String(), "principal", record.Principal, "request_id", record.RequestID)
	return made.ID, nil
}
