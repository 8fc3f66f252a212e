// Streams: a TCP connection, with TLS or without.

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// Stream is a connection. Reading and writing are each for one goroutine at a time.
type Stream interface {
	// Read waits for data.
	Read(p []byte) (int, error)
	// Receive waits for data too, but without a buffer: it gives one of the pool, at least partly filled.
	Receive() (*Buffer, int, error)
	// TryRead reads what has been received already, perhaps nothing; it never waits. An error comes with the next Read.
	TryRead(p []byte) int
	// WriteAll writes all pieces in as few system calls as it can; it may change the slice, never what its elements hold.
	WriteAll(pieces net.Buffers) error
	SetReadDeadline(t time.Time) error
	// CloseWrite tells the peer that nothing more comes; it still may send.
	CloseWrite() error
	Close() error
}

type plain struct{ *socket }

// Plain is a connection without TLS. A write that makes no progress for the time of stall fails.
func Plain(c *net.TCPConn, stall time.Duration) Stream { return plain{newSocket(c, stall)} }

// Receive gives all that there is, as far as it fits.
func (p plain) Receive() (*Buffer, int, error) { return p.receive() }

// TryRead gives nothing: Read of a TCP connection takes all that there is.
func (plain) TryRead([]byte) int { return 0 }

// WriteAll writes the pieces as vectors.
func (p plain) WriteAll(pieces net.Buffers) error { return p.send(pieces) }

// Secure is a TLS connection over a coalescing one.
type Secure struct {
	*tls.Conn
	beneath *coalescer
	drained bool // crypto/tls holds no whole record
}

// NewClient and NewServer put TLS over a connection. Call Handshake before anything else.
func NewClient(c *net.TCPConn, cfg *tls.Config, stall time.Duration) *Secure {
	beneath := newCoalescer(c, stall)
	return &Secure{Conn: tls.Client(beneath, cfg), beneath: beneath}
}

// NewServer is the other side of NewClient.
func NewServer(c *net.TCPConn, cfg *tls.Config, stall time.Duration) *Secure {
	beneath := newCoalescer(c, stall)
	return &Secure{Conn: tls.Server(beneath, cfg), beneath: beneath}
}

// Handshake shakes hands; from then on writes are coalesced.
func (s *Secure) Handshake(ctx context.Context) error {
	if err := s.HandshakeContext(ctx); err != nil {
		return err
	}
	s.beneath.begin()
	return nil
}

// Read waits for a record, and decrypts one.
func (s *Secure) Read(p []byte) (int, error) {
	s.drained = false
	return s.Conn.Read(p)
}

// TryRead decrypts records that have been received whole.
func (s *Secure) TryRead(p []byte) int {
	s.beneath.waitless = true
	n, err := s.Conn.Read(p)
	s.beneath.waitless = false
	s.drained = errors.Is(err, errWouldWait) // else there is more, or an error that crypto/tls keeps for the next Read
	return n
}

// Receive waits for a record. What TryRead left lies in crypto/tls and must be had first: nothing may come after it.
func (s *Secure) Receive() (*Buffer, int, error) {
	for {
		if s.drained {
			if err := s.beneath.wait(); errors.Is(err, io.EOF) {
				return nil, 0, s.failure() // crypto/tls knows whether a record was cut
			} else if err != nil {
				return nil, 0, err
			}
		}
		buf := buffers.take()
		n := s.TryRead(buf.Bytes)
		if n > 0 {
			return buf, n, nil
		}
		buffers.put(buf)
		if !s.drained {
			return nil, 0, s.failure()
		}
	}
}

// failure gives the error that crypto/tls has met.
func (s *Secure) failure() error {
	_, err := s.Read(make([]byte, 1))
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
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
