// One connection of a client through the sidecar.

package flow

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// NoBroker is the Broker of a connection to a bootstrap address.
const NoBroker int32 = -1

// Conn is a connection of a client and the one to the broker that belongs to it. The exported fields are set before handlers see
// it and do not change, but for Principal, which Open may set.
type Conn struct {
	ID       uint64
	Listener string // its name in the configuration
	Broker   int32  // node id of the broker behind it, or NoBroker
	Client   net.Addr
	Local    net.Addr             // where the client connected to
	Upstream net.Addr             // where the sidecar connected to
	TLS      *tls.ConnectionState // of the client; nil on a plaintext listener
	Topics   Topics

	// Principal is who the client is: from its certificate (spec/identity.md) on a TLS listener, else empty unless a handler's Open
	// knows better.
	Principal string

	mu     sync.Mutex
	kept   keep
	end    time.Time
	reason string
	drain  func(reason string)
	timer  *time.Timer
}

// Topics knows the names of topics by their ids. It is safe for concurrent use.
type Topics interface {
	// Name gives the name if it is known already.
	Name(id [16]byte) (string, bool)
	// Resolve gives the names of all ids that exist, asking the cluster for those not known.
	Resolve(ctx context.Context, ids [][16]byte) (map[[16]byte]string, error)
}

// Keep stores what a handler wants to find again on this connection.
func (c *Conn) Keep(key, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.set(key, value)
}

// Kept gives what was stored under key, or nil.
func (c *Conn) Kept(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.get(key)
}

// EndAt makes the connection end at a time, for a reason that logs and metrics show (one word, such as certificate, lease, age).
// The earliest time given wins. No request is read after it; what was read is answered, then the connection is closed.
func (c *Conn) EndAt(at time.Time, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.end.IsZero() && !at.Before(c.end) {
		return
	}
	c.end, c.reason = at, reason
	c.arm()
}

// Drain ends the connection as EndAt does, now.
func (c *Conn) Drain(reason string) { c.EndAt(time.Now(), reason) }

// End tells when and why the connection ends; the zero time if nothing ends it.
func (c *Conn) End() (time.Time, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end, c.reason
}

// OnDrain sets what ends the connection; it is the relay's.
func (c *Conn) OnDrain(drain func(reason string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain = drain
	if !c.end.IsZero() {
		c.arm()
	}
}

// Stop forgets the end: the connection has ended.
func (c *Conn) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain = nil
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *Conn) arm() {
	if c.drain == nil {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	drain, reason := c.drain, c.reason
	c.timer = time.AfterFunc(time.Until(c.end), func() { drain(reason) })
}
