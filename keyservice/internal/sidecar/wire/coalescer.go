// What lies beneath crypto/tls: it writes one record with each call, and reads one with two.

package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
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
	*net.TCPConn
	stall   time.Duration
	gather  bool
	closing atomic.Bool

	waitless bool // Read gives errWouldWait where it would wait
	in       *[BufferSize]byte
	r, w     int

	mu     sync.Mutex // crypto/tls may send an alert while another goroutine flushes
	out    *[BufferSize]byte
	filled int
}

func newCoalescer(c *net.TCPConn, stall time.Duration) *coalescer {
	return &coalescer{TCPConn: c, stall: stall}
}

func (c *coalescer) begin() { c.gather = true }

// buffered tells whether Read has something without waiting.
func (c *coalescer) buffered() bool { return c.r < c.w }

// Read gives what was received. While it waits it holds no buffer, so that an idle connection costs none.
func (c *coalescer) Read(p []byte) (int, error) {
	if c.r == c.w {
		if c.waitless {
			return 0, errWouldWait
		}
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.in[c.r:c.w])
	if c.r += n; c.r == c.w {
		buffers.Put(c.in)
		c.in, c.r, c.w = nil, 0, 0
	}
	return n, nil
}

// receive waits for data and takes as much as a buffer holds.
func (c *coalescer) receive() error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		in := takeBuffer()
		n, failed = unix.Read(int(fd), in[:]) // #nosec G115 -- a descriptor
		if n > 0 {
			c.in, c.r, c.w = in, 0, n
			return true
		}
		buffers.Put(in)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	switch {
	case err != nil:
		return err
	case n > 0:
		return nil
	case failed != nil:
		return &net.OpError{Op: "read", Net: "tcp", Addr: c.RemoteAddr(), Err: failed}
	default:
		return io.EOF
	}
}

// Write gathers p, or sends it at once during the handshake and at the end.
func (c *coalescer) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gather || c.closing.Load() {
		if err := c.flushLocked(); err != nil {
			return 0, err
		}
		return c.send(p)
	}
	written := 0
	for written < len(p) {
		if c.out == nil {
			c.out = takeBuffer()
		}
		n := copy(c.out[c.filled:], p[written:])
		written += n
		if c.filled += n; c.filled == BufferSize {
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

func (c *coalescer) flushLocked() error {
	if c.out == nil {
		return nil
	}
	_, err := c.send(c.out[:c.filled])
	buffers.Put(c.out)
	c.out, c.filled = nil, 0
	return err
}

func (c *coalescer) send(p []byte) (int, error) {
	if c.gather && !c.closing.Load() {
		if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
			return 0, err
		}
	}
	return c.TCPConn.Write(p)
}

// close makes what is written from now on, the last alert, go out at once.
func (c *coalescer) close() { c.closing.Store(true) }
