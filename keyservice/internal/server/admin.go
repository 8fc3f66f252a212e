// Health and metrics, on an address of their own.

package server

import (
	"context"
	"fmt"
	"net/http"
)

func (s *Server) newAdmin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /audit-head", s.auditHead)
	mux.Handle("GET /metrics", s.metrics.Handler())
	return mux
}

// ready tries what a call would need.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.check(r.Context()); err != nil {
		s.log.Warn("not ready", "error", err)
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	say(w, http.StatusOK, "ready")
}

func (s *Server) check(ctx context.Context) error {
	if s.closing.Load() {
		return fmt.Errorf("stopping")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := s.store.Check(ctx); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := s.audit.Check(ctx); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}
