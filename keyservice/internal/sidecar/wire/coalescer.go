// What lies beneath crypto/tls: it writes one record with each call, and reads one with two.

package wire

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// errWouldWait is temporary: crypto/tls goes on after it.
var errWouldWait = wouldWaitError{}

type wouldWaitError struct{}

func (wouldWaitError) Error() string   { return "nothing more has been received" }
func (wouldWaitError) Timeout() bool   { return true }
func (wouldWaitError) Temporary() bool { return true }

// coalescer gathers the records that crypto/tls writes until flush, and reads many at once. Buffers are held only while they hold
// something: an idle connection has none. Until begin (during the handshake) every write is sent at once.
type coalescer struct {
	*socket

	gather  bool
	closing atomic.Bool

	waitless bool // Read gives errWouldWait where it would wait
	in       *Buffer
	r, w     int

	mu     sync.Mutex // crypto/tls may send an alert while another goroutine flushes
	out    *Buffer
	filled int
	piece  [1][]byte
}

func newCoalescer(c *net.TCPConn, stall time.Duration) *coalescer {
	return &coalescer{socket: newSocket(c, stall)}
}

func (c *coalescer) begin() { c.gather = true }

// Read gives what was received. While it waits it holds no buffer, so that an idle connection costs none.
func (c *coalescer) Read(p []byte) (int, error) {
	if c.r == c.w {
		if c.waitless {
			return 0, errWouldWait
		}
		if err := c.wait(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.in.Bytes[c.r:c.w])
	if c.r += n; c.r == c.w {
		buffers.put(c.in)
		c.in, c.r, c.w = nil, 0, 0
	}
	return n, nil
}

// wait waits for data, when all that was received has been read, and takes as much as a buffer holds.
func (c *coalescer) wait() error {
	if c.r < c.w {
		return nil
	}
	in, n, err := c.receive()
	if err != nil {
		return err
	}
	c.in, c.r, c.w = in, 0, n
	return nil
}

// Write gathers p, or sends it at once during the handshake and at the end.
func (c *coalescer) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gather || c.closing.Load() {
		if err := c.flushLocked(); err != nil {
			return 0, err
		}
		return c.TCPConn.Write(p)
	}
	written := 0
	for written < len(p) {
		if c.out == nil {
			c.out = sealed.take()
		}
		n := copy(c.out.Bytes[c.filled:], p[written:])
		written += n
		if c.filled += n; c.filled == len(c.out.Bytes) {
			if err := c.flushLocked(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

func (c *coalescer) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushLocked()
}

func (c *coalescer) flushLocked() (err error) {
	if c.out == nil {
		return nil
	}
	if c.closing.Load() { // within the deadline that crypto/tls has set
		_, err = c.TCPConn.Write(c.out.Bytes[:c.filled])
	} else {
		c.piece[0] = c.out.Bytes[:c.filled]
		err = c.send(c.piece[:])
		c.piece[0] = nil
	}
	sealed.put(c.out)
	c.out, c.filled = nil, 0
	return err
}

// close makes what is written from now on, the last alert, go out at once.
func (c *coalescer) close() { c.closing.Store(true) }
