// What the service keeps between calls: what it has read of the revocations, the leases that it gave, what was counted,
// and the work in the background.

package service

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/rewrap"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/usage"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// Info says which replica this is.
type Info struct {
	Version  string
	Instance string // the host name
	Backend  string // embedded or vault
	Started  time.Time
}

// State is what lasts from one call to the next.
type State struct {
	Info        Info
	Revocations *lease.Revocations
	Leases      *lease.Registry
	Usage       *usage.Counter
	Rewrap      *rewrap.Job
	Sidecars    *view.Registry

	rotations singleflight.Group
	running   sync.WaitGroup
	stop      context.CancelFunc
}

// Begin reads what is needed from the store and begins the work in the background. Close ends it.
func Begin(ctx context.Context, s store.Store, info Info, log *slog.Logger) *State {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	b := &State{
		Info:        info,
		Revocations: lease.Open(ctx, s, log),
		Leases:      lease.NewRegistry(lease.MaxLeases),
		Usage:       usage.New(s, log),
		Rewrap:      rewrap.New(s, info.Instance, log),
		Sidecars:    view.NewRegistry(),
		stop:        stop,
	}
	for _, run := range []func(context.Context){b.Revocations.Run, b.Usage.Run, b.Rewrap.Run} {
		b.running.Go(func() { run(running) })
	}
	return b
}

// Close ends the work in the background and writes what was counted.
func (b *State) Close() {
	b.stop()
	b.running.Wait()
}

// Admit refuses principals that are revoked as a whole, before anything else is looked at; and everybody when it is not
// known who is [CL-OPR-003] [CL-OPR-004].
func (s *Service) Admit(call Call) error { return s.checkRevoked(call, "", "") }

// checkRevoked refuses what is revoked.
func (s *Service) checkRevoked(call Call, scope string, action policy.Action) error {
	err := s.Revocations.Check(lease.Names{Principal: call.Principal, Scope: scope, Action: string(action)})
	switch {
	case errors.Is(err, lease.ErrRevoked):
		return refusal.New(refusal.NotAuthorized, "an operator revoked this: %s", revoked(call, scope))
	case err != nil:
		return refusal.Because(refusal.Unavailable, err, "the revocations could not be read for too long, so nothing is given out; look at the key store")
	default:
		return nil
	}
}

func revoked(call Call, scope string) string {
	if scope == "" {
		return "principal " + call.Principal
	}
	return "principal " + call.Principal + ", scope " + scope + ", or this lease"
}

// grant notes a lease that was given.
func (s *Service) grant(record audit.Record, l policy.Lease) {
	names := lease.Names{Principal: record.Principal, Scope: record.Scope, Action: record.Action}
	s.Leases.Grant(names, time.Now(), l.ExpiresIn)
}
