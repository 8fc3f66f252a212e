// Connections that go through a tunnel to another sidecar: the side that opens it.

package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/tunnel"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Tunnels are what a side that takes them needs (the first two), and one that opens them.
type Tunnels struct {
	tunnel.Options

	Observer TunnelObserver

	Connections int // to each address
	OwnBytes    int // a connection that carries more of them, within OwnWithin, ends; the next one of its listener has TLS for itself
	OwnWithin   time.Duration
	Refuse      bool // connections to peers without tunnels; else they have TLS for themselves
}

// TunnelObserver counts connections that have TLS for themselves where there are tunnels.
type TunnelObserver interface {
	Own(reason string)
}

// tunnels are those that this side opens.
type tunnels struct {
	*Tunnels

	pool    *tunnel.Pool
	tickets tickets
}

func newTunnels(o Options) *tunnels {
	return &tunnels{Tunnels: o.Tunnels, pool: tunnel.NewPool(o.Tunnels.Connections, o.Trust.Generation)}
}

// close ends them, once all that went through them has ended here.
func (t *tunnels) close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	t.pool.Close(ctx)
}

// openStream gives a stream of a tunnel; nothing, if the connection is to have TLS for itself.
func (g *Gateway) openStream(ctx context.Context, conn *flow.Conn, address string, route Route) (wire.Stream, error) {
	t := g.tunnels
	if t.tickets.use(route.Name, time.Now()) {
		t.Observer.Own("grown")
		return nil, nil
	}
	link, err := t.pool.Get(ctx, address, func(ctx context.Context) (*tunnel.Link, error) { return g.dialTunnel(ctx, address, route) })
	switch {
	case errors.Is(err, tunnel.ErrUnsupported) && !t.Refuse:
		t.Observer.Own("unsupported")
		return nil, nil
	case errors.Is(err, tunnel.ErrFull):
		t.Observer.Own("full")
		return nil, nil
	case err != nil:
		return nil, err
	}
	stream, err := link.Open(ctx, g.watch(conn, route), func() { t.pool.Put(link) })
	if err != nil {
		return nil, err
	}
	conn.Upstream = link.Peer
	conn.EndAt(time.Now().Add(early(time.Until(link.Ends))), link.Reason)
	return stream, nil
}

// dialTunnel makes a connection that carries streams. It is replaced, by another certificate perhaps, before the last fifth of its time.
func (g *Gateway) dialTunnel(ctx context.Context, address string, route Route) (*tunnel.Link, error) {
	life := tunnel.Life{Age: g.Trust.Generation(), Reason: "certificate"} // before the handshake: if it changes meanwhile, the link is not used again
	s, own, err := g.secure(ctx, address, route.NameOf, tunnel.Protocol)
	if err != nil {
		return nil, err
	}
	state := s.ConnectionState()
	if state.NegotiatedProtocol != tunnel.Protocol {
		return nil, errors.Join(tunnel.ErrUnsupported, s.Close())
	}
	now := time.Now()
	life.Ends = own
	if theirs := state.PeerCertificates[0].NotAfter; theirs.Before(life.Ends) {
		life.Ends = theirs
	}
	if aged := now.Add(g.MaxAge); g.MaxAge > 0 && aged.Before(life.Ends) {
		life.Ends, life.Reason = aged, "age"
	}
	life.Retires = now.Add(time.Duration(float64(life.Ends.Sub(now)) * (1 - spread)))
	return tunnel.NewLink(ctx, wire.NewWhole(s), g.tunnels.Options, life, g.Relay.Drain+time.Second)
}

// watch ends a connection that has grown.
func (g *Gateway) watch(conn *flow.Conn, route Route) func(in, out int) {
	size := growth{limit: g.tunnels.OwnBytes, within: g.tunnels.OwnWithin}
	return func(in, out int) {
		if size.add(in+out, time.Now()) {
			g.tunnels.tickets.give(route.Name, time.Now())
			conn.Drain("grown")
		}
	}
}

// growth tells once when more than limit bytes have passed within a time.
type growth struct {
	limit  int
	within time.Duration

	mu    sync.Mutex
	began time.Time
	bytes int
	told  bool
}

func (s *growth) add(n int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.began) > s.within {
		s.began, s.bytes = now, 0
	}
	if s.bytes += n; s.bytes <= s.limit || s.told {
		return false
	}
	s.told = true
	return true
}

const (
	ticketFor   = 10 * time.Second // a client that was using its connection is back at once
	mostTickets = 1000             // of one listener
)

// tickets let the next connections of a listener have TLS for themselves. The zero value is ready.
type tickets struct {
	mu  sync.Mutex
	due map[string][]time.Time // until when they hold
}

func (t *tickets) give(listener string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.due == nil {
		t.due = map[string][]time.Time{}
	}
	if len(t.due[listener]) < mostTickets {
		t.due[listener] = append(t.due[listener], now.Add(ticketFor))
	}
}

func (t *tickets) use(listener string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.due[listener]
	for len(all) > 0 && now.After(all[0]) {
		all = all[1:]
	}
	if len(all) == 0 {
		delete(t.due, listener)
		return false
	}
	t.due[listener] = all[1:]
	return true
}
