// What is read again while the service runs.

package server

import (
	"context"
	"time"
)

// lookInterval is how long a changed file may go unnoticed.
const lookInterval = 2 * time.Second

// reloaded tells what became of a policy that was read again.
func (s *Server) reloaded(err error) {
	s.metrics.Reloaded(err)
	if err != nil {
		s.log.Error("the policy is invalid; the one in force stays", "error", err)
		return
	}
	s.log.Info("policy reloaded", "policy", s.cfg.Policy)
}

// look takes over what has changed since it looked last: the policy file, and the CAs.
func (s *Server) look(ctx context.Context) {
	if changed, err := s.policy.ReloadChanged(); changed {
		s.reloaded(err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookInterval)
	defer cancel()
	if s.signer != nil {
		if _, err := s.signer.Reload(ctx); err != nil {
			s.log.Warn("the CAs could not be read again; those known stay", "error", err)
		}
	}
	if err := s.trust(); err != nil {
		s.log.Error("the CAs of clients could not be read again; those known stay", "error", err)
	}
}
