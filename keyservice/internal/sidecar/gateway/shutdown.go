// The connections that are open, and the end of them all.

package gateway

import (
	"context"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

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

// Shutdown drains all connections, and cuts those off that have not ended when ctx does. Listeners must have been closed:
// what they took before that is among those, and what they refused is counted and told.
func (g *Gateway) Shutdown(ctx context.Context) {
	g.accepts.Wait()
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
	g.tunnels.close()
	g.tells.Wait()
	g.tell(true)
}
