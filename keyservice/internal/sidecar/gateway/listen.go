// Listeners, and how many connections they take.

package gateway

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Listen opens a listener and serves it until it is closed.
func (g *Gateway) Listen(address string, route Route) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(g.ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	g.accepts.Go(func() { g.accept(l, route) })
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
			g.warn(g.Log, trouble{"a connection could not be accepted", route.Name, "", "accept"}, "listener", route.Name, "error", err)
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
		g.refused(g.Log.With("listener", route.Name, "client", c.RemoteAddr().String()), route.Name, c.RemoteAddr(), errConnections)
		_ = c.Close()
		return
	}
	g.open.Go(func() {
		defer func() { <-g.slots }()
		g.serve(c, route)
	})
}
