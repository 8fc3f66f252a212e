// One connection from its beginning to its end, and what is said of it.

package gateway

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/relay"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// serve is one connection from its beginning to its end.
func (g *Gateway) serve(c *net.TCPConn, route Route) {
	conn := &flow.Conn{
		ID: g.next.Add(1), Listener: route.Name, Broker: route.Broker, Client: c.RemoteAddr(), Local: c.LocalAddr(), Topics: g.Topics,
	}
	client, upstream, err := g.connect(conn, c, route)
	switch {
	case err != nil:
		g.refused(g.logOf(conn), route.Name, conn.Client, err)
		_ = c.Close()
	case isTunnel(conn):
		g.serveTunnel(conn, client, c, route)
	default:
		g.through(conn, client, upstream, route)
	}
}

func (g *Gateway) logOf(conn *flow.Conn) *slog.Logger {
	return g.Log.With("connection", conn.ID, "listener", conn.Listener, "client", conn.Client.String())
}

// through is a connection whose both sides are there.
func (g *Gateway) through(conn *flow.Conn, client, upstream wire.Stream, route Route) {
	if g.MaxAge > 0 {
		conn.EndAt(time.Now().Add(early(g.MaxAge)), "age")
	}
	if !g.enter(conn) {
		_ = errors.Join(client.Close(), upstream.Close())
		return
	}
	defer g.leave(conn)
	log := g.logOf(conn)
	g.Observer.Opened(route.Name)
	log.Debug("a connection is open", "principal", conn.Principal, "upstream", conn.Upstream.String())
	err := g.carry(conn, client, upstream, route)
	reason := endOf(conn, err)
	g.Observer.Ended(route.Name, reason)
	if err != nil {
		g.warn(log, trouble{connectionEnded, route.Name, hostOf(conn.Client), reason}, "principal", conn.Principal, "error", err)
		return
	}
	log.Debug(connectionEnded, "reason", reason, "principal", conn.Principal)
}

const connectionEnded = "a connection has ended"

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
