// A stream without a socket of its own: one of many within a connection that is somebody else's.

package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Piped is a Stream. What it reads is what Fill takes from somewhere; what it writes is what Outgoing gives. In between nothing is stored: who
// writes waits until it is taken, at most for the time of stall without progress.
type Piped struct {
	stall  time.Duration
	moved  func(in, out int)
	closed func()

	in, filled net.Conn // both ends of what comes
	out, taken net.Conn // both ends of what goes

	mu  sync.Mutex
	end error // of what comes, if it is not io.EOF
}

// NewPiped makes one. moved is told how many bytes were read and written, closed that Close was called.
func NewPiped(stall time.Duration, moved func(in, out int), closed func()) *Piped {
	p := &Piped{stall: stall, moved: moved, closed: sync.OnceFunc(closed)}
	p.in, p.filled = net.Pipe()
	p.out, p.taken = net.Pipe()
	return p
}

// fillSize is of the one buffer that an idle Piped holds, in bytes.
const fillSize = 16 << 10

// Fill makes what from gives be read, until it ends or the Piped is closed.
func (p *Piped) Fill(from io.Reader) {
	_, err := io.CopyBuffer(struct{ io.Writer }{p.filled}, struct{ io.Reader }{from}, make([]byte, fillSize))
	p.mu.Lock()
	p.end = err
	p.mu.Unlock()
	_ = p.filled.Close()
}

// Outgoing gives what is written, io.EOF after CloseWrite. When it is closed, writing fails.
func (p *Piped) Outgoing() io.ReadCloser { return p.taken }

// Read waits for data.
func (p *Piped) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.moved(n, 0)
	if errors.Is(err, io.EOF) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.end != nil {
			err = p.end
		}
	}
	return n, err
}

// Receive waits for data: to read nothing from a net.Pipe waits until there is something.
func (p *Piped) Receive() (*Buffer, int, error) {
	if _, err := p.Read(nil); err != nil {
		return nil, 0, err
	}
	buf := buffers.take()
	n, err := p.Read(buf.Bytes)
	if err != nil {
		buffers.put(buf)
		return nil, 0, err
	}
	return buf, n, nil
}

// TryRead gives nothing: Read takes all that there is.
func (*Piped) TryRead([]byte) int { return 0 }

// WriteAll writes the pieces in turn. Each part of them has the time of stall.
func (p *Piped) WriteAll(pieces net.Buffers) error {
	for _, piece := range pieces {
		for len(piece) > 0 {
			part := piece[:min(len(piece), BufferSize)]
			if err := p.out.SetWriteDeadline(time.Now().Add(p.stall)); err != nil {
				return err
			}
			n, err := p.out.Write(part)
			p.moved(0, n)
			if err != nil {
				return err
			}
			piece = piece[n:]
		}
	}
	return p.out.SetWriteDeadline(time.Time{})
}

// SetReadDeadline implements Stream.
func (p *Piped) SetReadDeadline(t time.Time) error { return p.in.SetReadDeadline(t) }

// CloseWrite ends what Outgoing gives.
func (p *Piped) CloseWrite() error { return p.out.Close() }

// Close ends both directions.
func (p *Piped) Close() error {
	err := errors.Join(p.out.Close(), p.in.Close())
	p.closed()
	return err
}

// Whole is a Secure as a net.Conn for a protocol that writes whole frames: each Write is sent at once. It has no method that tells of TLS:
// what runs above would take it for its own.
type Whole struct{ s *Secure }

// NewWhole makes one, of a connection that has shaken hands.
func NewWhole(s *Secure) Whole { return Whole{s} }

// Read implements net.Conn, as all that follow.
func (w Whole) Read(p []byte) (int, error) { return w.s.Read(p) }

// Write encrypts and sends.
func (w Whole) Write(p []byte) (int, error) {
	if err := w.s.WriteAll(net.Buffers{p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the connection.
func (w Whole) Close() error { return w.s.Close() }

// LocalAddr is this side's.
func (w Whole) LocalAddr() net.Addr { return w.s.LocalAddr() }

// RemoteAddr is the peer's.
func (w Whole) RemoteAddr() net.Addr { return w.s.RemoteAddr() }

// SetDeadline sets both.
func (w Whole) SetDeadline(t time.Time) error { return w.s.SetDeadline(t) }

// SetReadDeadline sets that of Read.
func (w Whole) SetReadDeadline(t time.Time) error { return w.s.SetReadDeadline(t) }

// SetWriteDeadline does nothing: a write has the time of stall, beneath.
func (Whole) SetWriteDeadline(time.Time) error { return nil }
