// Package gateway listens for clients and connects them with their upstream: TLS on one side, a relay or plain copying in between.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/relay"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Options are the same for all listeners.
type Options struct {
	Trust    *trust.Source
	TLSIn    bool // clients come with mutual TLS, and the upstream is plaintext; else the other way round
	Relay    relay.Options
	Topics   flow.Topics
	Log      *slog.Logger
	Observer Observer

	Connections int           // at once, over all listeners; more are closed at once
	Handshakes  int           // at once
	Handshake   time.Duration // longest handshake, and longest time to connect
	MaxAge      time.Duration // of a connection; 0: no limit
}

// Observer counts.
type Observer interface {
	Opened(listener string)
	Ended(listener, reason string)
	Refused(listener, reason string)
}

// Route is what a listener leads to.
type Route struct {
	Name     string // for logs and metrics
	Broker   int32
	Kafka    bool                                     // else bytes are copied
	Upstream func(*net.TCPConn) ([]string, error)     // addresses to try in turn
	NameOf   func(address string) (serverName string) // nil: the host of the address
}

// Gateway is all listeners. Make it with New.
type Gateway struct {
	Options
	slots      chan struct{}
	handshakes chan struct{}
	next       atomic.Uint64

	ctx    context.Context //nolint:containedctx // of all connections
	cancel context.CancelFunc
	open   sync.WaitGroup
	mu     sync.Mutex
	conns  map[*flow.Conn]struct{}
	ending bool
}

// New makes one without listeners.
func New(o Options) *Gateway {
	ctx, cancel := context.WithCancel(context.Background())
	return &Gateway{
		Options: o, slots: make(chan struct{}, o.Connections), handshakes: make(chan struct{}, o.Handshakes),
		ctx: ctx, cancel: cancel, conns: map[*flow.Conn]struct{}{},
	}
}

// Listen opens a listener and serves it until it is closed.
func (g *Gateway) Listen(address string, route Route) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(g.ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	go g.accept(l, route)
	return l, nil
}

// acceptPause is for errors such as too many open files: they do not end by trying at once.
const acceptPause = 50 * time.Millisecond

func (g *Gateway) accept(l net.Listener, route Route) {
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			g.Log.Error("a connection could not be accepted", "listener", route.Name, "error", err)
			time.Sleep(acceptPause)
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			g.take(tcp, route)
		}
	}
}

// take serves a connection if there is a slot for it.
func (g *Gateway) take(c *net.TCPConn, route Route) {
	select {
	case g.slots <- struct{}{}:
	default:
		g.Observer.Refused(route.Name, "connections")
		_ = c.Close()
		return
	}
	g.open.Go(func() {
		defer func() { <-g.slots }()
		g.serve(c, route)
	})
}

// serve is one connection from its beginning to its end.
func (g *Gateway) serve(c *net.TCPConn, route Route) {
	conn := &flow.Conn{
		ID: g.next.Add(1), Listener: route.Name, Broker: route.Broker, Client: c.RemoteAddr(), Local: c.LocalAddr(), Topics: g.Topics,
	}
	log := g.Log.With("connection", conn.ID, "listener", route.Name, "client", conn.Client.String())
	client, upstream, err := g.connect(conn, c, route)
	if err != nil {
		_ = c.Close()
		g.Observer.Refused(route.Name, refusalOf(err))
		log.Warn("a connection was refused", "error", err)
		return
	}
	if !g.enter(conn) {
		_ = errors.Join(client.Close(), upstream.Close())
		return
	}
	defer g.leave(conn)
	g.Observer.Opened(route.Name)
	log.Debug("a connection is open", "principal", conn.Principal, "upstream", conn.Upstream.String())
	err = g.carry(conn, client, upstream, route)
	reason := endOf(conn, err)
	g.Observer.Ended(route.Name, reason)
	log.Log(g.ctx, levelOf(err), "a connection has ended", "principal", conn.Principal, "reason", reason, "error", err)
}

func (g *Gateway) carry(conn *flow.Conn, client, upstream wire.Stream, route Route) error {
	if !route.Kafka {
		return relay.Copy(g.ctx, conn, client, upstream, g.Relay)
	}
	if err := g.Relay.Chain.Open(g.ctx, conn); err != nil {
		return errors.Join(err, client.Close(), upstream.Close())
	}
	defer g.Relay.Chain.Closed(conn)
	return relay.Serve(g.ctx, conn, client, upstream, g.Relay)
}

// connect shakes hands on the one side and connects on the other.
func (g *Gateway) connect(conn *flow.Conn, c *net.TCPConn, route Route) (client, upstream wire.Stream, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, g.Handshake)
	defer cancel()
	client = wire.Plain(c, g.Relay.Stall)
	if g.TLSIn {
		if client, err = g.greet(ctx, conn, c); err != nil {
			return nil, nil, err
		}
	}
	if upstream, err = g.dial(ctx, conn, c, route); err != nil {
		return nil, nil, err
	}
	if g.MaxAge > 0 {
		conn.EndAt(time.Now().Add(early(g.MaxAge)), "age")
	}
	return client, upstream, nil
}

// greet shakes hands with a client.
func (g *Gateway) greet(ctx context.Context, conn *flow.Conn, c *net.TCPConn) (wire.Stream, error) {
	s := wire.NewServer(c, g.Trust.Server(), g.Relay.Stall)
	if err := g.shake(ctx, s); err != nil {
		return nil, err
	}
	state := s.ConnectionState()
	leaf := state.PeerCertificates[0]
	principal, err := identity.FromCertificate(leaf, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHandshake, err)
	}
	conn.TLS, conn.Principal = &state, principal
	endWith(conn, leaf.NotAfter)
	endWith(conn, g.Trust.Ends())
	return s, nil
}

// Errors that metrics tell apart.
var (
	errHandshake = errors.New("the TLS handshake failed")
	errUpstream  = errors.New("no upstream can be reached")
)

// shake shakes hands, when not too many do at the same time.
func (g *Gateway) shake(ctx context.Context, s *wire.Secure) error {
	select {
	case g.handshakes <- struct{}{}:
		defer func() { <-g.handshakes }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errHandshake, ctx.Err())
	}
	if err := s.Handshake(ctx); err != nil {
		return fmt.Errorf("%w: %w", errHandshake, err)
	}
	return nil
}

// dial connects with the first upstream that takes the connection.
func (g *Gateway) dial(ctx context.Context, conn *flow.Conn, client *net.TCPConn, route Route) (wire.Stream, error) {
	failures := []error{errUpstream}
	addresses, err := route.Upstream(client)
	if err != nil {
		return nil, errors.Join(errUpstream, err)
	}
	for _, address := range addresses {
		stream, err := g.dialOne(ctx, conn, address, route)
		if err == nil {
			return stream, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
	}
	return nil, errors.Join(failures...)
}

func (g *Gateway) dialOne(ctx context.Context, conn *flow.Conn, address string, route Route) (wire.Stream, error) {
	stream, at, state, err := g.Connect(ctx, address, route.NameOf)
	if err != nil {
		return nil, err
	}
	conn.Upstream = at
	if state != nil {
		endWith(conn, state.PeerCertificates[0].NotAfter)
		endWith(conn, g.Trust.Ends())
	}
	return stream, nil
}

// Connect connects with an upstream; state is nil if that is plaintext.
func (g *Gateway) Connect(ctx context.Context, address string, nameOf func(string) string) (wire.Stream, net.Addr, *tls.ConnectionState, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, nil, nil, errors.Join(errUpstream, c.Close())
	}
	if g.TLSIn {
		return wire.Plain(tcp, g.Relay.Stall), c.RemoteAddr(), nil, nil
	}
	name, _, err := net.SplitHostPort(address)
	if nameOf != nil {
		name = nameOf(address)
	}
	cfg, _, missing := g.Trust.Client(name)
	if err := errors.Join(err, missing); err != nil {
		return nil, nil, nil, errors.Join(err, c.Close())
	}
	s := wire.NewClient(tcp, cfg, g.Relay.Stall)
	if err := g.shake(ctx, s); err != nil {
		return nil, nil, nil, errors.Join(err, c.Close())
	}
	state := s.ConnectionState()
	return s, c.RemoteAddr(), &state, nil
}

// endWith ends a connection before a certificate does, at different times for different connections.
func endWith(conn *flow.Conn, notAfter time.Time) {
	conn.EndAt(time.Now().Add(early(time.Until(notAfter))), "certificate")
}

// spread is the last part of a time over which the ends of connections that began together are spread.
const spread = 0.2

func early(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - spread*rand.Float64())) // #nosec G404 -- no secret
}

func (g *Gateway) enter(conn *flow.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ending {
		g.conns[conn] = struct{}{}
	}
	return !g.ending
}

func (g *Gateway) leave(conn *flow.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
}

// Each calls do for every open connection.
func (g *Gateway) Each(do func(*flow.Conn)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		do(conn)
	}
}

// Shutdown drains all connections, and cuts those off that have not ended when ctx does. Listeners must have been closed.
func (g *Gateway) Shutdown(ctx context.Context) {
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	g.Each(func(c *flow.Conn) { c.Drain("shutdown") })
	done := make(chan struct{})
	go func() {
		g.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	g.cancel()
	<-done
}

func refusalOf(err error) string {
	switch {
	case errors.Is(err, trust.ErrEnded):
		return "certificate"
	case errors.Is(err, errUpstream):
		return "upstream"
	default:
		return "handshake"
	}
}

// endOf says why a connection ended, in one word.
func endOf(conn *flow.Conn, err error) string {
	if at, reason := conn.End(); !at.IsZero() && !time.Now().Before(at) {
		return reason
	}
	if err == nil || errors.Is(err, io.EOF) {
		return "closed"
	}
	return "error"
}

func levelOf(err error) slog.Level {
	if err == nil {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}
