// Package gateway listens for clients and connects them with their upstream: TLS on one side, a relay or plain copying in between.
package gateway

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/gather"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/relay"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
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

	Tunnels *Tunnels // nil: every connection has a TLS connection of its own
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
	troubles   *gather.Gatherer[trouble]
	tunnels    *tunnels // nil: this side opens none

	ctx     context.Context //nolint:containedctx // of all connections
	cancel  context.CancelFunc
	accepts sync.WaitGroup
	open    sync.WaitGroup
	tells   sync.WaitGroup
	mu      sync.Mutex
	conns   map[*flow.Conn]struct{}
	ending  bool
}

// New makes one without listeners. It must be ended with Shutdown.
func New(o Options) *Gateway {
	ctx, cancel := context.WithCancel(context.Background())
	g := &Gateway{
		Options: o, slots: make(chan struct{}, o.Connections), handshakes: make(chan struct{}, o.Handshakes),
		ctx: ctx, cancel: cancel, conns: map[*flow.Conn]struct{}{}, troubles: gather.New[trouble](troubleWindow, troubleMost),
	}
	if o.Tunnels != nil && !o.TLSIn {
		g.tunnels = newTunnels(o)
	}
	g.tells.Go(func() { g.tellCounted(ctx) })
	return g
}
