// Leases and revocations, for the operator.

package service

import (
	"context"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Leases are a page of those that this replica gave.
type Leases struct {
	Instance string
	Complete bool
	Leases   []lease.Lease
	Next     string
}

// ListLeases lists the leases that this replica gave and that have not ended nor been revoked. An empty principal or
// scope stands for any.
//
// Errors: not-authorized, audit-unavailable.
func (s *Service) ListLeases(ctx context.Context, call Call, principal, scope string, page Page) (Leases, error) {
	return inspect(ctx, s, call, call.Record(policy.ActionAdmin), func(context.Context) (Leases, error) {
		all, complete := s.Leases.List(time.Now(), func(n lease.Names) bool {
			return (principal == "" || n.Principal == principal) && (scope == "" || n.Scope == scope) && s.Revocations.Check(n) == nil
		})
		l := Leases{Instance: s.Info.Instance, Complete: complete}
		l.Leases, l.Next = lease.Page(all, func(l lease.Lease) string { return l.ID() }, page.After, page.Limit)
		return l, nil
	})
}

// ListRevocations lists what is revoked; next is empty at the end.
//
// Errors: not-authorized, key-service-unavailable, internal, audit-unavailable.
func (s *Service) ListRevocations(ctx context.Context, call Call, page Page) (revocations []lease.Revocation, next string, err error) {
	revocations, err = inspect(ctx, s, call, call.Record(policy.ActionAdmin), func(ctx context.Context) ([]lease.Revocation, error) {
		all, err := s.Revocations.List(ctx)
		if err == nil {
			all, next = lease.Page(all, func(r lease.Revocation) string { return r.ID() }, page.After, page.Limit)
		}
		return all, err
	})
	return revocations, next, err
}

// Revoke adds a revocation, which holds here when it returns. One that is there already is given as it is.
//
// Errors: not-authorized, request-invalid, key-service-unavailable, internal, audit-unavailable.
func (s *Service) Revoke(ctx context.Context, call Call, names lease.Names, reason string) (lease.Revocation, error) {
	return change(ctx, s, call, revokeRecord(call, names), func(ctx context.Context, _ *audit.Record) (lease.Revocation, error) {
		if names == (lease.Names{Principal: call.Principal}) {
			return lease.Revocation{}, refusal.New(refusal.RequestInvalid, "a principal cannot revoke itself: who should take that back?")
		}
		return s.Revocations.Revoke(ctx, lease.Revocation{Names: names, Created: time.Now(), By: call.Principal, Reason: reason})
	})
}

func revokeRecord(call Call, names lease.Names) audit.Record {
	record := call.Record(policy.ActionRevoke)
	record.Scope, record.Subject = names.Scope, names.Principal
	return record
}

// Unrevoke takes a revocation back and gives it.
//
// Errors: not-authorized, not-found, key-service-unavailable, internal, audit-unavailable.
func (s *Service) Unrevoke(ctx context.Context, call Call, id string) (lease.Revocation, error) {
	return change(ctx, s, call, revokeRecord(call, lease.Names{}), func(ctx context.Context, record *audit.Record) (lease.Revocation, error) {
		removed, err := s.Revocations.Unrevoke(ctx, id)
		record.Scope, record.Subject = removed.Scope, removed.Principal
		return removed, err
	})
}
