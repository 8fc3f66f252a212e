// The audit log: opened as the configuration says, rotated on demand.

package server

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// auditLog is what the server needs of it, beside writing.
type auditLog interface {
	audit.Log
	Rotate() error
	Head() audit.Head
}

func openAudit(cfg config.Audit, log *slog.Logger) (auditLog, error) {
	o := audit.Options{
		Name: cfg.Name, File: cfg.File, MaxSize: int64(cfg.MaxSize), MaxAge: cfg.MaxAge,
		RequireStdout: cfg.RequireStdout, RequireSyslog: cfg.RequireSyslog,
	}
	if cfg.Stdout {
		o.Stdout = os.Stdout
	}
	if cfg.Syslog != nil {
		o.Syslog = &audit.Syslog{Address: cfg.Syslog.Address}
		if cfg.Syslog.CA != "" {
			var err error
			if o.Syslog.TLS, err = clientTLS(*cfg.Syslog); err != nil {
				return nil, err
			}
		}
	}
	opened, err := audit.Open(o, log)
	if err != nil { // a nil *audit.Writer must not become an auditLog that is not nil
		return nil, err
	}
	return opened, nil
}

func (s *Server) rotateAudit() {
	if err := s.audit.Rotate(); err != nil {
		s.log.Error("the audit log could not be rotated", "error", err)
	}
}

// Refusals for want of room are gathered for so long, and of so many principals apart.
const (
	throttledWindow = 10 * time.Second
	throttledMost   = 10_000
)

// recordThrottled writes a line for the refusals of each principal that were gathered [CL-AUD-007].
func (s *Server) recordThrottled(all bool) {
	var records []audit.Record
	for _, g := range s.refused.Due(time.Now(), all) {
		records = append(records, audit.Record{
			Time: time.Now(), Action: audit.ActionThrottled, Principal: g.Kind, Outcome: audit.Refused,
			Code: string(refusal.Unavailable), Count: g.Count,
		})
	}
	if len(records) == 0 {
		return
	}
	if err := s.audit.Write(context.Background(), records...); err != nil {
		s.log.Error("refusals that were gathered are not in the audit log", "principals", len(records), "error", err)
	}
}

// auditHead tells the last line of the chain, to be kept elsewhere: `cipherlane audit verify --head` takes it.
func (s *Server) auditHead(w http.ResponseWriter, _ *http.Request) {
	say(w, http.StatusOK, s.audit.Head().String())
}
