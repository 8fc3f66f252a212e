// What sidecars ask for, on behalf of those whom they serve.

package service

import (
	"context"
	"crypto/x509"
	"net/netip"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// RefusedFor is how long a sidecar may go by a refusal: so soon a new grant, or the beginning of a window, is noticed.
const RefusedFor = 5 * time.Second

// Subject is one for whom a sidecar asks, as the sidecar saw him.
type Subject struct {
	Principal   string
	Remote      netip.Addr        // zero: not known
	Certificate *x509.Certificate // nil: none was shown
	Process     *policy.Process   // nil: not known
}

func (s Subject) asker() policy.Asker {
	return policy.Asker{Principal: s.Principal, Remote: s.Remote, Certificate: s.Certificate, Process: s.Process}
}

// AccessCheck is one thing that a subject wants to do. Name is that of a topic, a group or a transactional id; empty for cluster.
type AccessCheck struct {
	Action policy.Action
	Name   string
}

// AccessDecision answers a check, for a time.
type AccessDecision struct {
	Lease   policy.Lease
	Refusal *refusal.Error // nil: allowed
}

// Access decides about many checks of one subject; the answer has their order. All of them are in the audit log first.
//
// Errors: not-authorized, key-service-unavailable, audit-unavailable: of the call as a whole.
func (s *Service) Access(ctx context.Context, call Call, subject Subject, checks []AccessCheck) ([]AccessDecision, error) {
	record := call.Record(policy.ActionAccess)
	record.Subject = subject.Principal
	policies := s.Policies.Current()
	if err := policies.MayAsk(call.Asker(), subject.Principal); err != nil {
		return nil, s.Refuse(ctx, record, err)
	}
	decisions, records := make([]AccessDecision, len(checks)), make([]audit.Record, len(checks))
	for i, check := range checks {
		var scope string
		decisions[i], scope = s.decideAccess(policies, subject, check)
		records[i] = accessRecord(record, check, scope, decisions[i])
	}
	if err := s.write(ctx, records...); err != nil {
		return nil, err
	}
	return decisions, nil
}

func (s *Service) decideAccess(p *policy.Policy, subject Subject, check AccessCheck) (decision AccessDecision, scope string) {
	d, err := p.Access(subject.asker(), check.Action, check.Name)
	if err == nil {
		err = s.checkRevoked(Call{Principal: subject.Principal}, d.Scope, check.Action)
	}
	if err != nil {
		return AccessDecision{policy.Lease{RefreshIn: RefusedFor, ExpiresIn: RefusedFor}, asRefusal(err)}, d.Scope
	}
	return AccessDecision{Lease: d.Lease}, d.Scope
}

func accessRecord(r audit.Record, check AccessCheck, scope string, d AccessDecision) audit.Record {
	r.Right, r.Outcome, r.Scope = string(check.Action), audit.Allowed, scope
	switch check.Action.On() {
	case policy.OnTopic:
		r.Topic = check.Name
	case policy.OnGroup:
		r.Group = check.Name
	case policy.OnTransaction:
		r.Transaction = check.Name
	case policy.OnScope, policy.OnPrincipal, policy.Nothing:
	}
	if d.Refusal != nil {
		r.Outcome, r.Code = audit.Refused, string(d.Refusal.Code)
		return r
	}
	r.ExpiresIn = int64(d.Lease.ExpiresIn / time.Second)
	return r
}

// Report takes over what a sidecar tells of itself. Such calls are not in the audit log: they give nothing and change nothing.
//
// Errors: not-authorized, audit-unavailable.
func (s *Service) Report(ctx context.Context, call Call, report view.Report) error {
	if err := s.Policies.Current().MayAskForSomebody(call.Asker()); err != nil {
		return s.Refuse(ctx, call.Record(policy.ActionAccess), err)
	}
	s.Sidecars.Take(call.Principal, report, time.Now())
	return nil
}

// View is what goes on: what sidecars reported to this replica, and the leases of data keys that it gave.
type View struct {
	Instance string
	Sidecars []view.Sidecar
	Leases   []lease.Lease
}

// maxViewLeases bounds the leases of data keys in a view.
const maxViewLeases = 1000

// Look gives the live view.
//
// Errors: not-authorized, audit-unavailable.
func (s *Service) Look(ctx context.Context, call Call) (View, error) {
	return inspect(ctx, s, call, call.Record(policy.ActionAdmin), func(context.Context) (View, error) {
		now := time.Now()
		leases, _ := s.Leases.List(now, func(n lease.Names) bool { return s.Revocations.Check(n) == nil })
		return View{s.Info.Instance, s.Sidecars.List(now), leases[:min(len(leases), maxViewLeases)]}, nil
	})
}
