// Who may do what: the handler of package access, its audit log, and the reports to the key service.

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/access"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/process"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// authorisation is what access needs while the sidecar runs.
type authorisation struct {
	handler *access.Handler
	journal *access.Journal
	log     *audit.Writer
	client  *keyclient.Client
	started time.Time
	stop    context.CancelFunc // nil: there are no reports
	running sync.WaitGroup
}

func (s *Server) openAccess() error {
	cfg := s.cfg.Access
	if cfg == nil {
		return nil
	}
	cas, err := files.ReadCAs(cfg.CA)
	if err != nil {
		return fmt.Errorf("access.ca: %w", err)
	}
	client, err := keyclient.New(cfg.URLs, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cas, GetClientCertificate: s.ownCertificate})
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	log, err := audit.Open(audit.Options{Name: cfg.Audit.Name, File: cfg.Audit.File, MaxSize: int64(cfg.Audit.MaxSize)}, s.log)
	if err != nil {
		return err
	}
	journal := access.NewJournal(log, host, access.NewMetrics(s.metrics.registry), s.log)
	var local *process.Finder
	if len(cfg.Processes) > 0 {
		local = process.New(cfg.Processes, cfg.Labels)
	}
	s.access = &authorisation{
		handler: access.New(access.NewLeases(access.KeyService{Client: client}, s.log), journal, local),
		journal: journal, log: log, client: client, started: time.Now(),
	}
	return nil
}

// startReports is called once everything listens.
func (s *Server) startReports() {
	if a := s.access; a != nil {
		var ctx context.Context
		ctx, a.stop = context.WithCancel(context.Background())
		a.running.Go(func() { s.report(ctx) })
	}
}

// ownCertificate is the one of now.
func (s *Server) ownCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cfg, _, err := s.trust.Client("")
	if err != nil {
		return nil, err
	}
	return &cfg.Certificates[0], nil
}

// report tells the key service what goes on, and writes lines for what was only counted, until ctx ends. A failure is logged when it
// begins and when it ends.
func (s *Server) report(ctx context.Context) {
	a := s.access
	failing := false
	for wait := time.Second; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		a.journal.Flush(ctx, false)
		r := a.journal.Report()
		r.Uptime, r.Listens = time.Since(a.started).Seconds(), []string{}
		for name, l := range s.listeners {
			if name != "admin" {
				r.Listens = append(r.Listens, view.Plain(l.Addr().String()))
			}
		}
		r.Certificate = max(0, time.Until(s.trust.Ends()).Seconds())
		next, err := a.client.Report(ctx, r)
		if failed := err != nil; failed != failing && ctx.Err() == nil {
			failing = failed
			s.log.Info("reports to the key service", "failing", failing, "error", err)
		}
		wait = min(max(next, time.Second), time.Minute)
	}
}

// close writes what was only counted. Call it when all connections have ended.
func (a *authorisation) close() error {
	if a == nil {
		return nil
	}
	if a.stop != nil {
		a.stop()
	}
	a.running.Wait()
	a.journal.Flush(context.Background(), true)
	a.client.Close()
	return a.log.Close()
}
