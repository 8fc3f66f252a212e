// The upstream's side of a connection that begins.

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

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
	if g.tunnels != nil && route.Kafka {
		stream, err := g.openStream(ctx, conn, address, route)
		if stream != nil || err != nil {
			return stream, err
		}
	}
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
	if !g.TLSIn {
		s, _, err := g.secure(ctx, address, nameOf)
		if err != nil {
			return nil, nil, nil, err
		}
		state, at := s.ConnectionState(), s.RemoteAddr()
		return s, at, &state, nil
	}
	c, err := dialTCP(ctx, address)
	if err != nil {
		return nil, nil, nil, err
	}
	return wire.Plain(c, g.Relay.Stall), c.RemoteAddr(), nil, nil
}

func dialTCP(ctx context.Context, address string) (*net.TCPConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(errUpstream, c.Close())
	}
	return tcp, nil
}

// secure shakes hands with an upstream, which may choose one of the protocols (ALPN). ends is when the sidecar's own certificate does.
func (g *Gateway) secure(ctx context.Context, address string, nameOf func(string) string, protocols ...string) (s *wire.Secure, ends time.Time, err error) {
	name, _, err := net.SplitHostPort(address)
	if nameOf != nil {
		name = nameOf(address)
	}
	cfg, ends, missing := g.Trust.Client(name)
	if err := errors.Join(err, missing); err != nil {
		return nil, ends, err
	}
	cfg.NextProtos = protocols
	c, err := dialTCP(ctx, address)
	if err != nil {
		return nil, ends, err
	}
	s = wire.NewClient(c, cfg, g.Relay.Stall)
	if err := g.shake(ctx, s); err != nil {
		return nil, ends, errors.Join(err, c.Close())
	}
	return s, ends, nil
}
