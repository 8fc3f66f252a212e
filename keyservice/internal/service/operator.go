// The operator's calls (spec/operator.md): what they have in common, and those that look at the service as a whole.

package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/document"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/rewrap"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// Page says which part of a list is wanted.
type Page struct {
	After string // the Next of the page before; empty: from the beginning
	Limit int
}

// allow decides whether the caller may do what the record says [CL-OPR-001].
func (s *Service) allow(call Call, record audit.Record) error {
	action, scope := policy.Action(record.Action), ""
	if action.OnScope() {
		scope = record.Scope
	}
	return s.Policies.Current().Allows(call.Asker(), action, scope)
}

// inspect answers a call that changes nothing: what look gives is recorded, then given.
func inspect[T any](ctx context.Context, s *Service, call Call, record audit.Record, look func(context.Context) (T, error)) (T, error) {
	var none T
	if err := s.allow(call, record); err != nil {
		return none, s.Refuse(ctx, record, err)
	}
	seen, err := look(ctx)
	if err != nil {
		return none, s.Refuse(ctx, record, operatorRefusal(err))
	}
	record.Outcome = audit.Allowed
	if err := s.write(ctx, record); err != nil {
		return none, err
	}
	return seen, nil
}

// change carries out a call that changes something. The audit log learns of it before it is done, so that no change
// goes unrecorded, and again when it is. The change may add to the record.
func change[T any](ctx context.Context, s *Service, call Call, record audit.Record, do func(context.Context, *audit.Record) (T, error)) (T, error) {
	var none T
	if err := s.allow(call, record); err != nil {
		return none, s.Refuse(ctx, record, err)
	}
	record.Outcome = audit.Begun
	if err := s.write(ctx, record); err != nil {
		return none, err
	}
	changed, err := do(ctx, &record)
	if err != nil {
		return none, s.Refuse(ctx, record, operatorRefusal(err))
	}
	record.Outcome = audit.Allowed
	if err := s.write(ctx, record); err != nil {
		return none, err
	}
	s.Log.Info("changed by an operator", "action", record.Action, "scope", record.Scope, "principal", call.Principal, "request_id", call.RequestID)
	return changed, nil
}

// operatorRefusal turns what the parts below say into what an operator is told.
func operatorRefusal(err error) error {
	switch {
	case errors.Is(err, store.ErrNoKey):
		return refusal.Because(refusal.NotFound, err, "the scope has no such key")
	case errors.Is(err, store.ErrCurrent):
		return refusal.Because(refusal.RequestInvalid, err, "the current key of a scope is not destroyed: rotate the scope first")
	case errors.Is(err, lease.ErrNone):
		return refusal.Because(refusal.NotFound, err, "no such revocation")
	case errors.Is(err, lease.ErrFull):
		return refusal.Because(refusal.RequestInvalid, err, fmt.Sprintf(
			"there is no room for another revocation (%d): put what is meant for good into the policy and take revocations back", lease.MaxRevocations))
	case errors.Is(err, document.ErrTooLarge):
		return refusal.Because(refusal.RequestInvalid, err, "there is no room for more of this in the store")
	default:
		return err
	}
}

// Part is one of the things that the service depends on.
type Part struct {
	Ready  bool
	Detail string // why it is not ready
}

// Status is how a replica is.
type Status struct {
	Info        Info
	Store       Part
	Audit       Part
	Policy      policy.Summary
	Revocations int
	Age         time.Duration // since the revocations were read
	Known       bool          // whether they ever were
	Leases      int
}

// Ready tells whether everything is.
func (s Status) Ready() bool {
	return s.Store.Ready && s.Audit.Ready && s.Known && s.Age <= lease.MaxAge
}

// checkTimeout bounds what a status may wait for.
const checkTimeout = 2 * time.Second

// Status tells how this replica is.
//
// Errors: not-authorized, audit-unavailable.
func (s *Service) Status(ctx context.Context, call Call) (Status, error) {
	return inspect(ctx, s, call, call.Record(policy.ActionAdmin), func(ctx context.Context) (Status, error) {
		age, known := s.Revocations.Age()
		return Status{
			Info:        s.Info,
			Store:       try(ctx, "the key store cannot be used", s.Store.Check),
			Audit:       try(ctx, "the audit log cannot be written", s.Audit.Check),
			Policy:      s.Policies.Current().Summary(),
			Revocations: s.Revocations.Count(), Age: age, Known: known,
			Leases: s.Leases.Count(time.Now()),
		}, nil
	})
}

// try tells whether a part works. What exactly is wrong with it stands in the log and in /readyz, not in an answer.
func try(ctx context.Context, wrong string, check func(context.Context) error) Part {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := check(ctx); err != nil {
		return Part{Detail: wrong + ": look at the service's log"}
	}
	return Part{Ready: true}
}

// Policy gives the policy in force.
//
// Errors: not-authorized, audit-unavailable.
func (s *Service) Policy(ctx context.Context, call Call) (policy.Summary, error) {
	return inspect(ctx, s, call, call.Record(policy.ActionAdmin), func(context.Context) (policy.Summary, error) {
		return s.Policies.Current().Summary(), nil
	})
}

// StartRewrap begins rewrapping, unless it is under way.
//
// Errors: not-authorized, key-service-unavailable, internal, audit-unavailable.
func (s *Service) StartRewrap(ctx context.Context, call Call) (rewrap.Progress, error) {
	return change(ctx, s, call, call.Record(policy.ActionAdmin), func(ctx context.Context, _ *audit.Record) (rewrap.Progress, error) {
		return s.Rewrap.Start(ctx, call.Principal)
	})
}

// RewrapProgress tells how far rewrapping is.
//
// Errors: as of StartRewrap.
func (s *Service) RewrapProgress(ctx context.Context, call Call) (rewrap.Progress, error) {
	return inspect(ctx, s, call, call.Record(policy.ActionAdmin), s.Rewrap.Progress)
}
