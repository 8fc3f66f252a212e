// Connections that come through a tunnel from another sidecar: the side that takes it. A stream is what a TLS connection would be: the
// certificate is that of the tunnel, the connection to the broker is its own.

package gateway

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/tunnel"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// isTunnel tells what was chosen in the handshake.
func isTunnel(conn *flow.Conn) bool {
	return conn.TLS != nil && conn.TLS.NegotiatedProtocol == tunnel.Protocol
}

// serveTunnel serves a tunnel, whose own time ends as a connection's does: it then takes no more streams.
func (g *Gateway) serveTunnel(conn *flow.Conn, client wire.Stream, c *net.TCPConn, route Route) {
	s, ok := client.(*wire.Secure)
	if !ok || !route.Kafka {
		g.refused(g.logOf(conn), route.Name, conn.Client, fmt.Errorf("%w: this listener takes no tunnels", errHandshake))
		_ = c.Close()
		return
	}
	if g.MaxAge > 0 {
		conn.EndAt(time.Now().Add(early(g.MaxAge)), "age")
	}
	if !g.enter(conn) {
		_ = client.Close()
		return
	}
	defer g.leave(conn)
	ends := g.Trust.Ends()
	log := g.logOf(conn)
	host := tunnel.NewHost(g.Tunnels.Options, func(o *tunnel.Offer) { g.takeStream(conn, ends, c, route, o) }, log)
	conn.OnDrain(func(reason string) {
		log.Debug("a tunnel takes no more connections", "reason", reason, "principal", conn.Principal)
		ctx, cancel := context.WithTimeout(g.ctx, time.Until(ends)+g.Relay.Drain)
		defer cancel()
		host.Drain(ctx)
	})
	defer conn.Stop()
	log.Debug("a tunnel is open", "principal", conn.Principal)
	host.Serve(wire.NewWhole(s))
	log.Debug("a tunnel has ended", "principal", conn.Principal)
}

// takeStream serves a stream of a tunnel if there is a slot for it.
func (g *Gateway) takeStream(of *flow.Conn, ends time.Time, c *net.TCPConn, route Route, offer *tunnel.Offer) {
	conn := &flow.Conn{
		ID: g.next.Add(1), Listener: of.Listener, Broker: of.Broker, Client: of.Client, Local: of.Local, Topics: of.Topics,
		TLS: of.TLS, Principal: of.Principal,
	}
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	default:
		g.refuseStream(conn, offer, errConnections)
		return
	}
	endWith(conn, of.TLS.PeerCertificates[0].NotAfter)
	endWith(conn, ends)
	ctx, cancel := context.WithTimeout(g.ctx, g.Handshake)
	defer cancel()
	upstream, err := g.dial(ctx, conn, c, route)
	if err != nil {
		g.refuseStream(conn, offer, err)
		return
	}
	client, err := offer.Accept()
	if err != nil {
		_ = upstream.Close()
		g.refused(g.logOf(conn), route.Name, conn.Client, fmt.Errorf("the other side gave up its stream: %w", err))
		return
	}
	g.through(conn, client, upstream, route)
}

func (g *Gateway) refuseStream(conn *flow.Conn, offer *tunnel.Offer, err error) {
	g.refused(g.logOf(conn), conn.Listener, conn.Client, err)
	offer.Refuse(refusalOf(err))
}
