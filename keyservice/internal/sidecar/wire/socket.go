// A TCP connection, in as few system calls as there can be.

package wire

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket waits for data without a buffer, so that an idle connection costs none, and sets a deadline for a write only when the kernel
// takes no more: most writes never wait, and a deadline is as dear as a small write.
type socket struct {
	*net.TCPConn
	raw   syscall.RawConn
	stall time.Duration
	in    incoming
	out   outgoing

	readSome, writeSome func(fd uintptr) bool // methods, bound once
}

// incoming is what receive is at, outgoing what send is at.
type incoming struct {
	buf *Buffer
	n   int
	err error
}

type outgoing struct {
	pieces [][]byte
	waited bool
	err    error
}

func newSocket(c *net.TCPConn, stall time.Duration) *socket {
	s := &socket{TCPConn: c, stall: stall}
	raw, err := c.SyscallConn()
	if err != nil { // of a connection that is none
		raw = noSocket{err}
	}
	s.raw, s.readSome, s.writeSome = raw, s.readOnce, s.writeAll
	return s
}

// noSocket fails whatever is done with it.
type noSocket struct{ err error }

func (n noSocket) Control(func(uintptr)) error    { return n.err }
func (n noSocket) Read(func(uintptr) bool) error  { return n.err }
func (n noSocket) Write(func(uintptr) bool) error { return n.err }

// receive waits for data and gives it in a buffer of the pool.
func (s *socket) receive() (*Buffer, int, error) {
	s.in = incoming{}
	err := s.raw.Read(s.readSome)
	in := s.in
	s.in = incoming{}
	switch {
	case err != nil:
		return nil, 0, err
	case in.err != nil:
		return nil, 0, s.failure("read", in.err)
	case in.n == 0:
		return nil, 0, io.EOF
	default:
		return in.buf, in.n, nil
	}
}

// readOnce tells whether there is something, be it the end.
func (s *socket) readOnce(fd uintptr) bool {
	buf := buffers.take()
	n, err := retry(func() (int, error) { return unix.Read(int(fd), buf.Bytes) }) // #nosec G115 -- a descriptor
	if n > 0 {
		s.in = incoming{buf: buf, n: n}
		return true
	}
	buffers.put(buf)
	if errors.Is(err, unix.EAGAIN) {
		return false
	}
	s.in = incoming{err: err}
	return true
}

// send writes all pieces, and fails when nothing is taken for the time of stall.
func (s *socket) send(pieces [][]byte) error {
	s.out = outgoing{pieces: pieces}
	err := s.raw.Write(s.writeSome)
	out := s.out
	s.out = outgoing{}
	switch {
	case err != nil:
		return err
	case out.err != nil:
		return s.failure("write", out.err)
	case out.waited:
		return s.SetWriteDeadline(time.Time{})
	default:
		return nil
	}
}

// writeAll tells whether nothing is left to wait for.
func (s *socket) writeAll(fd uintptr) bool {
	n, err := retry(func() (int, error) { return writePieces(int(fd), s.out.pieces) }) // #nosec G115 -- a descriptor
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		s.out.err = err
		return true
	}
	if s.out.pieces = rest(s.out.pieces, n); len(s.out.pieces) == 0 {
		return true
	}
	s.out.waited = true
	s.out.err = s.SetWriteDeadline(time.Now().Add(s.stall))
	return s.out.err != nil
}

func writePieces(fd int, pieces [][]byte) (int, error) {
	if len(pieces) == 1 {
		return unix.Write(fd, pieces[0])
	}
	return unix.Writev(fd, pieces[:min(len(pieces), maxPieces)])
}

// maxPieces is what the kernel takes in one call (IOV_MAX).
const maxPieces = 1024

// rest gives what is left of the pieces after n bytes; it changes them.
func rest(pieces [][]byte, n int) [][]byte {
	for len(pieces) > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if len(pieces) > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}

func retry(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

func (s *socket) failure(what string, err error) error {
	return &net.OpError{Op: what, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}
