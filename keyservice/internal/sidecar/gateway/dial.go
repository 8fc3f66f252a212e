// The upstream's side of a connection that begins.

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

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
