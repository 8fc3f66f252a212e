// What is logged of connections that never begin, and of those that end by an error. A peer that connects in a loop must not fill the
// log: once in a while there is a warning of it, and the rest is counted [CL-SDC-031].

package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
)

// Errors that metrics tell apart.
var (
	errHandshake   = errors.New("the TLS handshake failed")
	errUpstream    = errors.New("no upstream can be reached")
	errConnections = errors.New("limits.connections is reached")
)

func refusalOf(err error) string {
	switch {
	case errors.Is(err, errConnections):
		return "connections"
	case errors.Is(err, trust.ErrEnded):
		return "certificate"
	case errors.Is(err, errUpstream):
		return "upstream"
	default:
		return "handshake"
	}
}

// trouble is what connections of one peer have in common.
type trouble struct{ what, listener, peer, reason string }

const (
	troubleWindow = 5 * time.Second // in which there is one warning
	troubleMost   = 1000            // are told apart
	troubleLook   = time.Second     // for windows that are over
)

// hostOf is who connects, from whatever port.
func hostOf(peer net.Addr) string {
	host, _, err := net.SplitHostPort(peer.String())
	if err != nil {
		return peer.String()
	}
	return host
}

// refused counts and logs a connection that never begins: before the peer can know, so that who saw it refused finds it counted.
func (g *Gateway) refused(log *slog.Logger, listener string, peer net.Addr, err error) {
	reason := refusalOf(err)
	g.Observer.Refused(listener, reason)
	g.warn(log, trouble{"a connection was refused", listener, hostOf(peer), reason}, "error", err)
}

// warn logs the first trouble of a window as a warning; the others are there for who looks for them with level debug.
func (g *Gateway) warn(log *slog.Logger, t trouble, more ...any) {
	level := slog.LevelDebug
	if g.troubles.Add(t, time.Now()) {
		level = slog.LevelWarn
	}
	log.Log(g.ctx, level, t.what, append([]any{"reason", t.reason}, more...)...)
}

// tellCounted logs how many warnings were left out in windows that are over, until ctx ends.
func (g *Gateway) tellCounted(ctx context.Context) {
	look := time.NewTicker(troubleLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			g.tell(false)
		}
	}
}

func (g *Gateway) tell(all bool) {
	for _, c := range g.troubles.Due(time.Now(), all) {
		t := c.Kind
		g.Log.Warn(cmp.Or(t.what, "connections of too many peers were refused or ended by errors")+": again and again",
			"left_out", c.Count, "listener", t.listener, "peer", t.peer, "reason", t.reason)
	}
}
