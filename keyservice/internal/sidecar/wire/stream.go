// Streams: a TCP connection, with TLS or without.

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// Stream is a connection. Reading and writing are each for one goroutine at a time.
type Stream interface {
	// Read waits for data.
	Read(p []byte) (int, error)
	// TryRead reads what has been received already, perhaps nothing; it never waits. An error comes with the next Read.
	TryRead(p []byte) int
	// WriteAll writes all pieces in as few system calls as it can.
	WriteAll(pieces net.Buffers) error
	SetReadDeadline(t time.Time) error
	// CloseWrite tells the peer that nothing more comes; it still may send.
	CloseWrite() error
	Close() error
}

type plain struct {
	*net.TCPConn
	stall time.Duration
}

// Plain is a connection without TLS. A write that makes no progress for the time of stall fails.
func Plain(c *net.TCPConn, stall time.Duration) Stream { return &plain{c, stall} }

// TryRead gives nothing: Read of a TCP connection takes all that there is.
func (*plain) TryRead([]byte) int { return 0 }

// maxWrite bounds what one system call writes, so that a stall is noticed within a large frame too.
const maxWrite = 1 << 20

// WriteAll writes the pieces as vectors.
func (p *plain) WriteAll(pieces net.Buffers) error {
	for len(pieces) > 0 {
		batch, rest := split(pieces, maxWrite)
		if err := p.SetWriteDeadline(time.Now().Add(p.stall)); err != nil {
			return err
		}
		if _, err := batch.WriteTo(p.TCPConn); err != nil {
			return err
		}
		pieces = rest
	}
	return nil
}

// split gives the first pieces, at most limit bytes, and the rest.
func split(pieces net.Buffers, limit int) (batch, rest net.Buffers) {
	size := 0
	for i, piece := range pieces {
		if size+len(piece) <= limit {
			size += len(piece)
			continue
		}
		cut := limit - size
		batch = append(append(net.Buffers{}, pieces[:i]...), piece[:cut])
		rest = append(net.Buffers{piece[cut:]}, pieces[i+1:]...)
		return batch, rest
	}
	return pieces, nil
}

// Secure is a TLS connection over a coalescing one.
type Secure struct {
	*tls.Conn
	beneath *coalescer
}

// NewClient and NewServer put TLS over a connection. Call Handshake before anything else.
func NewClient(c *net.TCPConn, cfg *tls.Config, stall time.Duration) *Secure {
	beneath := newCoalescer(c, stall)
	return &Secure{tls.Client(beneath, cfg), beneath}
}

// NewServer is the other side of NewClient.
func NewServer(c *net.TCPConn, cfg *tls.Config, stall time.Duration) *Secure {
	beneath := newCoalescer(c, stall)
	return &Secure{tls.Server(beneath, cfg), beneath}
}

// Handshake shakes hands; from then on writes are coalesced.
func (s *Secure) Handshake(ctx context.Context) error {
	if err := s.HandshakeContext(ctx); err != nil {
		return err
	}
	s.beneath.begin()
	return nil
}

// TryRead decrypts records that have been received whole.
func (s *Secure) TryRead(p []byte) int {
	if !s.beneath.buffered() {
		return 0
	}
	s.beneath.waitless = true
	n, _ := s.Read(p) // errWouldWait, or one that crypto/tls keeps for the next Read
	s.beneath.waitless = false
	return n
}

// WriteAll encrypts the pieces into full records and sends them.
func (s *Secure) WriteAll(pieces net.Buffers) error {
	for _, piece := range pieces {
		if _, err := s.Write(piece); err != nil {
			return err
		}
	}
	return s.beneath.flush()
}

// CloseWrite sends the alert that nothing more comes.
func (s *Secure) CloseWrite() error {
	return errors.Join(s.Conn.CloseWrite(), s.beneath.flush())
}

// Close ends the connection; the alert that goes before it waits for nobody.
func (s *Secure) Close() error {
	s.beneath.close()
	return s.Conn.Close()
}
