// The client's side of a connection that begins, and both handshakes.

package gateway

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// connect shakes hands on the one side and connects on the other. A tunnel has no upstream: its streams have.
func (g *Gateway) connect(conn *flow.Conn, c *net.TCPConn, route Route) (client, upstream wire.Stream, err error) {
	ctx, cancel := context.WithTimeout(g.ctx, g.Handshake)
	defer cancel()
	client = wire.Plain(c, g.Relay.Stall)
	if g.TLSIn {
		if client, err = g.greet(ctx, conn, c); err != nil || isTunnel(conn) {
			return client, nil, err
		}
	}
	upstream, err = g.dial(ctx, conn, c, route)
	return client, upstream, err
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
