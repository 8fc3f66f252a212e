// Package server runs the key service: it opens what the configuration names, listens, reloads the policy and stops.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cipherlane/cipherlane/keyservice/internal/api"
	"github.com/cipherlane/cipherlane/keyservice/internal/certificate"
	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/gather"
	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/metrics"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/ratelimit"
	"github.com/cipherlane/cipherlane/keyservice/internal/release"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/tracing"
)

// maxHeaders bounds the headers of a request: net/http takes 4 KiB more than it is told (spec/limits.md: 16 KiB).
const maxHeaders = 12 << 10

// Addresses are where a running service listens: ports chosen by the system are known then.
type Addresses struct {
	API   net.Addr
	Admin net.Addr
}

// Server is an opened key service.
type Server struct {
	cfg     config.Config
	log     *slog.Logger
	policy  *policy.File
	audit   auditLog
	store   store.Store
	state   *service.State
	metrics *metrics.Metrics
	callers *identity.Verifier
	signer  certificate.Signer         // nil: no certificates are given
	tls     atomic.Pointer[tls.Config] // for the next connection
	api     *http.Server
	admin   *http.Server
	lis     [2]net.Listener
	limits  *ratelimit.Limiter
	refused *gather.Gatherer[string] // for want of room, by principal
	tracer  *tracing.Tracer          // nil when tracing is off
	closing atomic.Bool
}

// Open opens everything that the configuration names and listens. On an error nothing stays open.
func Open(cfg config.Config, log *slog.Logger) (*Server, error) {
	s := &Server{
		cfg: cfg, log: log, metrics: metrics.New(), limits: ratelimit.New(cfg.Limits.PrincipalRate, cfg.Limits.PrincipalBurst),
		refused: gather.New[string](throttledWindow, throttledMost),
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.closeAll())
	}
	return s, nil
}

func (s *Server) open() (err error) {
	if s.policy, err = policy.Open(s.cfg.Policy); err != nil {
		return err
	}
	if err := s.startTracing(); err != nil {
		return err
	}
	if s.store, err = s.openStore(); err != nil {
		return err
	}
	if s.audit, err = openAudit(s.cfg.Audit, s.log); err != nil {
		return err
	}
	s.metrics.WatchAudit(s.audit)
	if err := s.openIdentity(context.Background()); err != nil {
		return err
	}
	s.metrics.WatchKeys(s.store)
	s.api = s.newHTTP(s.tracer.Handler(s.newAPI()))
	s.api.ConnContext = api.WithConnection
	if s.api.TLSConfig, err = s.newTLS(); err != nil {
		return err
	}
	s.watchCertificate(s.api.TLSConfig)
	s.admin = s.newHTTP(s.newAdmin())
	return s.listen()
}

func (s *Server) newAPI() http.Handler {
	s.state = service.Begin(context.Background(), s.store, s.info(), s.log)
	core := &service.Service{
		State: s.state, Policies: s.policy, Store: s.store, Audit: s.audit, Meter: s.metrics, Log: s.log,
		Signer: s.signer, Tokens: s.callers.Tokens,
	}
	options := api.Options{InFlight: s.cfg.Limits.InFlight, Timeout: s.cfg.Timeouts.Answer, Limits: s.limits, Throttled: s.refused}
	return api.New(core, s.callers, s.metrics, s.log, options)
}

// info says which replica this is.
func (s *Server) info() service.Info {
	info := service.Info{Version: release.Version, Backend: "embedded", Started: time.Now()}
	if s.cfg.Store.Vault != nil {
		info.Backend = "vault"
	}
	var err error
	if info.Instance, err = os.Hostname(); err != nil {
		info.Instance = "unknown"
	}
	return info
}

func (s *Server) newHTTP(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: s.cfg.Timeouts.Headers,
		ReadTimeout:       s.cfg.Timeouts.Request,
		WriteTimeout:      s.cfg.Timeouts.Answer,
		IdleTimeout:       s.cfg.Timeouts.Idle,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

func (s *Server) listen() error {
	for i, address := range []string{s.cfg.Listen, s.cfg.AdminListen} {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", address, err)
		}
		s.lis[i] = l
	}
	return nil
}

// Addresses tells where the service listens.
func (s *Server) Addresses() Addresses {
	return Addresses{API: s.lis[0].Addr(), Admin: s.lis[1].Addr()}
}

// Run serves until ctx ends, then answers what it has begun and closes everything [CL-API-019]. For every value on reload the
// policy is read again and a new audit file begun; the policy also when its file has changed [CL-POL-014].
func (s *Server) Run(ctx context.Context, reload <-chan os.Signal) error {
	failed := make(chan error, 2)
	go func() { failed <- s.api.ServeTLS(netutil.LimitListener(s.lis[0], s.cfg.Limits.Connections), "", "") }()
	go func() { failed <- s.admin.Serve(netutil.LimitListener(s.lis[1], s.cfg.Limits.Connections)) }()
	s.log.Info("serving", "api", s.lis[0].Addr().String(), "admin", s.lis[1].Addr().String(), "policy", s.cfg.Policy, "audit", s.cfg.Audit.File)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.shutdown()
		case err := <-failed:
			return errors.Join(err, s.closeAll())
		case <-reload:
			s.reloaded(s.policy.Reload())
			s.rotateAudit()
		case <-look.C:
			s.recordThrottled(false)
			s.look(ctx)
		}
	}
}

// shutdown lets calls end within the grace period, closes the rest, and then what they used.
func (s *Server) shutdown() error {
	s.closing.Store(true)
	s.log.Info("stopping", "grace_period", s.cfg.GracePeriod.String())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.GracePeriod)
	defer cancel()
	err := s.api.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("calls were cut off after the grace period of %s: %w", s.cfg.GracePeriod, err)
	}
	s.recordThrottled(true)
	if err := s.stopTracing(); err != nil {
		s.log.Warn("the last traces could not be sent", "error", err)
	}
	err = errors.Join(err, within(closeTimeout, s.closeAll))
	s.log.Info("stopped")
	return err
}

// closeTimeout is how long a disk may take to close its files: one that hangs must not keep the process alive.
const closeTimeout = 2 * time.Second

func within(limit time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("files were not closed within %s: a disk hangs", limit)
	}
}

func (s *Server) closeAll() error {
	var failures []error
	for _, h := range []*http.Server{s.api, s.admin} {
		if h != nil {
			failures = append(failures, h.Close())
		}
	}
	for _, l := range s.lis {
		if l != nil { // closed already by its server, if that ran
			_ = l.Close()
		}
	}
	if s.state != nil { // it writes to the store once more
		s.state.Close()
	}
	if s.audit != nil {
		failures = append(failures, s.audit.Close())
	}
	if s.store != nil {
		failures = append(failures, s.store.Close())
	}
	return errors.Join(failures...)
}

// checkTimeout bounds a health check.
const checkTimeout = 2 * time.Second
