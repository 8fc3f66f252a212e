// Health and metrics, on a loopback address.

package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
)

func (s *Server) newAdmin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", s.metrics.handler())
	return mux
}

// ready tells whether a new connection would have a certificate.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	switch {
	case s.closing.Load():
		say(w, http.StatusServiceUnavailable, "stopping")
	case time.Now().After(s.trust.Ends()):
		say(w, http.StatusServiceUnavailable, trust.ErrEnded.Error())
	default:
		say(w, http.StatusOK, "ready")
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}
