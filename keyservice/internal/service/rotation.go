// Rotation: on demand, and when a key has reached a limit of the policy.

package service

import (
	"context"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// minCounted is the least age of a key that is replaced for what was counted under it: a producer that reports nonsense
// must not fill the store with keys.
const minCounted = time.Second

// freshKey gives a scope's current key, a new one if that has reached a limit. When no new one can be made, there is
// none to give [CL-OPR-006].
func (s *Service) freshKey(ctx context.Context, call Call, scope string, report *Usage) (store.Record, error) {
	current, err := s.Store.Current(ctx, scope)
	if err != nil {
		return store.Record{}, err
	}
	due, err := s.isDue(ctx, current, report)
	if err != nil || !due {
		return current, err
	}
	return s.replace(ctx, call, current)
}

// isDue tells whether a key has reached a limit, with what this call reports. report may be nil.
func (s *Service) isDue(ctx context.Context, current store.Record, report *Usage) (bool, error) {
	limits, age := s.Policies.Current().Rotation(current.Scope), time.Since(current.Created)
	if age >= limits.Every {
		return true, nil
	}
	total, err := s.Usage.Total(ctx, current.Scope, current.ID)
	if err != nil {
		return false, err
	}
	if report != nil && report.Kid == current.ID {
		total = total.Plus(report.counts())
	}
	return age >= minCounted && (total.Records >= limits.Records || total.Bytes >= limits.Bytes), nil
}

// replace makes a new key in place of one. Of the calls that want it at once one does it, and records it: under its own
// request, without a principal, because nobody asked for it.
func (s *Service) replace(ctx context.Context, call Call, old store.Record) (store.Record, error) {
	made, err, _ := s.rotations.Do(old.ID.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRotation)
		defer cancel()
		// A call that saw the old key may come here after another has replaced it: there is nothing left to do, or to record.
		if current, err := s.Store.Current(ctx, old.Scope); err != nil || current.ID != old.ID {
			return current, err
		}
		record := audit.Record{RequestID: call.RequestID, Action: string(policy.ActionRotate), Scope: old.Scope, Outcome: audit.Begun}
		if err := s.write(ctx, record); err != nil {
			return store.Record{}, err
		}
		made, err := s.Store.Replace(ctx, old.Scope, old.ID)
		if err != nil {
			return store.Record{}, s.Refuse(ctx, record, err)
		}
		_, err = s.rotated(ctx, record, made)
		return made, err
	})
	current, _ := made.(store.Record)
	return current, err
}

// maxRotation bounds making a key that others wait for.
const maxRotation = 10 * time.Second

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
