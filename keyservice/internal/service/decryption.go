// Decryption keys.

package service

import (
	"context"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// DecryptionKeys is the answer to a consumer: an entry for each kid asked for, in the same order.
type DecryptionKeys struct {
	AcceptPlaintext bool
	Lease           policy.Lease
	Keys            []DecryptionKey
}

// DecryptionKey is one key, or the reason why it is not given.
type DecryptionKey struct {
	Kid     datakey.ID
	Scope   string
	Key     *datakey.Key // nil when refused
	Refusal *refusal.Error
}

// Wipe overwrites the keys.
func (d *DecryptionKeys) Wipe() {
	for _, k := range d.Keys {
		if k.Key != nil {
			k.Key.Wipe()
		}
	}
}

// DecryptionKeys gives the keys of records that were read from a topic. A key of a scope other than the topic's is not
// even unwrapped [CL-API-012].
//
// Errors: not-authorized, topic-unknown, topic-forbidden, internal, audit-unavailable.
func (s *Service) DecryptionKeys(ctx context.Context, call Call, topic string, kids []datakey.ID) (DecryptionKeys, error) {
	record := call.Record(policy.ActionDecrypt)
	record.Topic = topic
	decision, err := s.Policies.Current().Topic(call.Asker(), policy.ActionDecrypt, topic)
	if err == nil {
		record.Scope, record.Mode = decision.Scope, string(decision.Mode)
		err = checkForbidden(decision, topic)
	}
	if err == nil {
		err = s.checkRevoked(call, decision.Scope, policy.ActionDecrypt)
	}
	if err != nil {
		return DecryptionKeys{}, s.Refuse(ctx, record, err)
	}
	answer, err := s.decryptionKeys(ctx, decision, topic, kids)
	if err != nil {
		record.Kids = texts(kids)
		return DecryptionKeys{}, s.Refuse(ctx, record, err)
	}
	if err := s.write(ctx, decryptionRecords(record, answer.Keys)...); err != nil {
		answer.Wipe()
		return DecryptionKeys{}, err
	}
	if s.count(decision.Scope, answer.Keys) > 0 {
		s.grant(record, decision.Lease)
	}
	return answer, nil
}

func checkForbidden(d policy.Decision, topic string) error {
	if d.Mode == policy.Forbid { // [CL-POL-004]
		return refusal.New(refusal.TopicForbidden, "the policy forbids topic %q", topic)
	}
	return nil
}

func (s *Service) decryptionKeys(ctx context.Context, d policy.Decision, topic string, kids []datakey.ID) (DecryptionKeys, error) {
	found, err := s.Store.Lookup(ctx, d.Scope, kids)
	if err != nil {
		return DecryptionKeys{}, err
	}
	answer := DecryptionKeys{AcceptPlaintext: d.AcceptPlaintext, Lease: d.Lease, Keys: make([]DecryptionKey, len(kids))}
	var allowed []store.Record
	var places []int
	for i, kid := range kids {
		r, known := found[kid]
		answer.Keys[i] = DecryptionKey{Kid: kid, Scope: r.Scope, Refusal: refuseKid(r, known, d.Scope, topic)}
		if answer.Keys[i].Refusal == nil {
			allowed, places = append(allowed, r), append(places, i)
		}
	}
	keys, err := s.Store.Unwrap(ctx, allowed)
	if err != nil {
		return DecryptionKeys{}, err
	}
	for i, key := range keys {
		answer.Keys[places[i]].Key = key
	}
	return answer, nil
}

func refuseKid(r store.Record, known bool, scope, topic string) *refusal.Error {
	switch {
	case !known:
		return refusal.New(refusal.KeyUnknown, "no such key")
	case r.Scope != scope:
		return refusal.New(refusal.ScopeMismatch, "the key is not of the scope of topic %q: the record was moved", topic)
	case r.IsDestroyed(): // [CL-OPR-010]
		return refusal.New(refusal.KeyDestroyed, "the key was destroyed on purpose: the record is unreadable for good")
	default:
		return nil
	}
}

// decryptionRecords gives one record for the keys released and one for each code of those refused. A call without kids
// is recorded too: it told how plaintext is met.
func decryptionRecords(record audit.Record, keys []DecryptionKey) []audit.Record {
	kids := map[refusal.Code][]string{}
	for _, k := range keys {
		code := refusal.Code("")
		if k.Refusal != nil {
			code = k.Refusal.Code
		}
		kids[code] = append(kids[code], k.Kid.String())
	}
	var records []audit.Record
	for _, code := range []refusal.Code{"", refusal.KeyUnknown, refusal.ScopeMismatch, refusal.KeyDestroyed} {
		if len(kids[code]) > 0 || code == "" && len(keys) == 0 {
			records = append(records, outcomeRecord(record, kids[code], code))
		}
	}
	return records
}

func outcomeRecord(record audit.Record, kids []string, code refusal.Code) audit.Record {
	record.Outcome, record.Kids, record.Code = audit.Allowed, kids, string(code)
	if code != "" {
		record.Outcome = audit.Refused
	}
	return record
}

// count gives the number of keys released.
func (s *Service) count(scope string, keys []DecryptionKey) (released int) {
	for _, k := range keys {
		if k.Refusal != nil {
			s.Meter.KidRefused(k.Refusal.Code)
		} else {
			released++
		}
	}
	s.Meter.Released(policy.ActionDecrypt, scope, released)
	return released
}

func texts(kids []datakey.ID) []string {
	all := make([]string, len(kids))
	for i, kid := range kids {
		all[i] = kid.String()
	}
	return all
}
