// Package server runs the sidecar: it opens what the configuration names, puts the handlers into one chain, serves and stops.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/identityclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/brokers"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/gateway"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/payload"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/relay"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/rewrite"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Addresses are where a running sidecar listens, by the name of the listener; "admin" is one of them.
type Addresses map[string]string

// Server is an opened sidecar.
type Server struct {
	cfg       config.Config
	log       *slog.Logger
	metrics   *metrics
	trust     *trust.Source
	identity  *identityclient.Client // nil: the certificate is that of PEM files
	stop      context.CancelFunc
	gateway   *gateway.Gateway
	book      *brokers.Book
	access    *authorisation // nil: nothing is authorised
	admin     *http.Server
	payload   *payload.Handler // nil: values pass as they are
	listeners map[string]net.Listener
	closing   atomic.Bool
}

// Open opens everything that the configuration names and listens. On an error nothing stays open.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger) (*Server, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &Server{stop: stop, cfg: cfg, log: log, metrics: newMetrics(), listeners: map[string]net.Listener{}}
	s.trust = trust.New(cfg.TLS.Peers, s.takenProtocol())
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) error {
	if err := s.openTrust(ctx); err != nil {
		return err
	}
	s.metrics.watch(s)
	if err := errors.Join(s.openAccess(), s.openPayload()); err != nil {
		return err
	}
	topics := rewrite.NewTopics(s.askTopics)
	s.book = s.newBook()
	s.gateway = gateway.New(gateway.Options{
		Trust: s.trust, TLSIn: s.cfg.Side == config.Broker, Topics: topics, Log: s.log, Observer: s.metrics,
		Connections: s.cfg.Limits.Connections, Handshakes: s.cfg.Limits.Handshakes,
		Handshake: s.cfg.Limits.Handshake, MaxAge: s.cfg.Limits.MaxAge, Tunnels: s.tunnels(),
		Relay: relay.Options{
			Chain:    flow.NewChain(protocol.Versions(), s.handlers(topics)...),
			Requests: wire.NewBudget(int64(s.cfg.Limits.Memory / 2)), Responses: wire.NewBudget(int64(s.cfg.Limits.Memory / 2)),
			MaxFrame: s.cfg.Limits.Frame, InFlight: s.cfg.Limits.InFlight,
			Drain: s.cfg.GracePeriod, Stall: s.cfg.Limits.Stall,
		},
	})
	err := errors.Join(s.listenKafka(), s.listenTCP(), s.listenTransparent(), s.listenAdmin())
	if err == nil {
		s.startReports()
	}
	return err
}

// handlers are what a request passes, in this order; its response passes them from the last to the first, so that those before see
// addresses and versions as the client will.
func (s *Server) handlers(topics *rewrite.Topics) []flow.Handler {
	all := []flow.Handler{rewrite.Versions{}, topics}
	if s.cfg.Transparent == nil {
		all = append(all, &rewrite.Addresses{Book: s.book, Log: s.log})
	}
	if s.access != nil {
		all = append(all, s.access.handler)
	}
	if s.payload != nil { // the last: what is refused before never asks for a key
		all = append(all, s.payload)
	}
	return all
}

func (s *Server) newBook() *brokers.Book {
	if s.cfg.Kafka == nil {
		return brokers.NewBook(brokers.Options{Log: s.log})
	}
	b := s.cfg.Kafka.Brokers
	return brokers.NewBook(brokers.Options{
		Host: b.Host, BasePort: b.BasePort, Port: b.Port, Forget: b.Forget, Log: s.log,
		Listen: func(id int32, port int, upstream func() string) (io.Closer, error) {
			return s.gateway.Listen(net.JoinHostPort(b.Listen, strconv.Itoa(port)), gateway.Route{
				Name: "broker-" + strconv.Itoa(int(id)), Broker: id, Kafka: true, NameOf: s.nameOf(),
				Upstream: func(*net.TCPConn) ([]string, error) { return []string{upstream()}, nil },
			})
		},
	})
}

func (s *Server) nameOf() func(string) string {
	if s.cfg.TLS.ServerName == "" {
		return nil
	}
	return func(string) string { return s.cfg.TLS.ServerName }
}

func (s *Server) listen(name, address string, route gateway.Route) error {
	route.Name, route.NameOf = name, s.nameOf()
	l, err := s.gateway.Listen(address, route)
	if err == nil {
		s.listeners[name] = l
	}
	return err
}

func (s *Server) listenKafka() error {
	if s.cfg.Kafka == nil {
		return nil
	}
	return s.listen("kafka", s.cfg.Kafka.Listen, gateway.Route{Broker: flow.NoBroker, Kafka: true, Upstream: anyOf(s.cfg.Kafka.Upstream)})
}

func (s *Server) listenTCP() error {
	for _, t := range s.cfg.TCP {
		if err := s.listen(t.Name, t.Listen, gateway.Route{Broker: flow.NoBroker, Upstream: anyOf(t.Upstream)}); err != nil {
			return err
		}
	}
	return nil
}

// anyOf gives addresses in an order that differs from connection to connection.
func anyOf(addresses []string) func(*net.TCPConn) ([]string, error) {
	return func(*net.TCPConn) ([]string, error) { return shuffled(addresses), nil }
}

func shuffled(addresses []string) []string {
	all := slices.Clone(addresses)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) // #nosec G404 -- no secret
	return all
}

// listenTransparent takes connections that the kernel redirects. Addresses stay as brokers give them: what goes there is redirected.
func (s *Server) listenTransparent() error {
	t := s.cfg.Transparent
	if t == nil {
		return nil
	}
	return s.listen("transparent", t.Listen, gateway.Route{Broker: flow.NoBroker, Kafka: t.Kafka, Upstream: func(c *net.TCPConn) ([]string, error) {
		at, err := gateway.OriginalDestination(c)
		if t.Port != 0 {
			at = netip.AddrPortFrom(at.Addr(), uint16(t.Port)) // #nosec G115 -- checked with the configuration
		}
		return []string{at.String()}, err
	}})
}

func (s *Server) listenAdmin() error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.cfg.AdminListen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.AdminListen, err)
	}
	s.listeners["admin"] = l
	s.admin = &http.Server{Handler: s.newAdmin(), ReadHeaderTimeout: adminTimeout, ReadTimeout: adminTimeout, WriteTimeout: adminTimeout}
	return nil
}

const adminTimeout = 5 * time.Second

// Addresses tells where the sidecar listens.
func (s *Server) Addresses() Addresses {
	all := Addresses{}
	for name, l := range s.listeners {
		all[name] = l.Addr().String()
	}
	return all
}

// Run serves until ctx ends, then lets connections end within the grace period.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.admin.Serve(s.listeners["admin"]) }()
	s.log.Info("serving", "side", s.cfg.Side, "listeners", s.Addresses())
	select {
	case <-ctx.Done():
		return s.shutdown()
	case err := <-failed:
		return errors.Join(err, s.Close())
	}
}

func (s *Server) shutdown() error {
	s.closing.Store(true)
	s.log.Info("stopping", "grace_period", s.cfg.GracePeriod.String())
	return s.Close()
}

// Close drains connections and closes everything.
func (s *Server) Close() error {
	defer s.stop()
	for name, l := range s.listeners {
		if name != "admin" {
			_ = l.Close()
		}
	}
	if s.book != nil {
		_ = s.book.Close()
	}
	if s.gateway != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.GracePeriod)
		defer cancel()
		s.gateway.Shutdown(ctx)
	}
	if s.payload != nil {
		s.payload.Close()
	}
	err := s.access.close()
	if s.admin != nil {
		err = errors.Join(err, s.admin.Close())
	}
	return err
}
