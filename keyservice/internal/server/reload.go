// What is read again while the service runs.

package server

import "time"

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
