// The side that opens streams.

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Life is how long a connection lasts.
type Life struct {
	Retires time.Time // from when it takes no more streams
	Ends    time.Time // when its streams must have ended
	Reason  string    // of the end, in one word
	Age     any       // no stream is added once the pool's Age is another
}

// Link is a connection that carries streams. Make it with NewLink, give it back with Pool.Put.
type Link struct {
	Life
	Peer net.Addr

	conn *http.ClientConn
	o    Options
	room int // streams

	ended func()
	cut   *time.Timer

	streams int  // the pool's
	retired bool // the pool's
}

// NewLink begins HTTP/2 on a connection, and waits until the other side has answered; it closes the connection if it fails. grace is how long after
// its end it is cut off.
func NewLink(ctx context.Context, c net.Conn, o Options, life Life, grace time.Duration) (*Link, error) {
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil },
		Protocols:   protocols(), HTTP2: o.http2(), DisableCompression: true, IdleConnTimeout: idle, MaxResponseHeaderBytes: headers,
	}
	conn, err := transport.NewClientConn(ctx, "http", "tunnel:80")
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	l := &Link{Life: life, Peer: c.RemoteAddr(), conn: conn, o: o}
	if err := l.greet(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the tunnel does not answer: %w", err)
	}
	o.Observer.TunnelOpened()
	l.ended = sync.OnceFunc(func() {
		l.cut.Stop()
		o.Observer.TunnelEnded()
	})
	l.cut = time.AfterFunc(time.Until(life.Ends)+grace, l.close)
	conn.SetStateHook(func(c *http.ClientConn) {
		if c.Err() != nil {
			l.ended()
		}
	})
	if conn.Err() != nil { // before the hook was there
		l.ended()
	}
	return l, nil
}

// greet makes sure of the other side, whose settings have come once it has answered.
func (l *Link) greet(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, target, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := l.conn.RoundTrip(request)
	if err != nil {
		return err
	}
	if l.room = min(l.o.Streams, l.conn.Available()+l.conn.InFlight()); answer.StatusCode != http.StatusNoContent || l.room == 0 {
		return fmt.Errorf("%w: %s", ErrRefused, answer.Status)
	}
	return answer.Body.Close()
}

func (l *Link) close() {
	_ = l.conn.Close()
	l.ended()
}

// Open opens a stream, within the time of ctx. moved may be nil; ended is called once when the stream has ended, or was never opened.
func (l *Link) Open(ctx context.Context, moved func(in, out int), ended func()) (wire.Stream, error) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, cancel)
	piped := l.o.piped(moved, func() { time.AfterFunc(leave, cancel) })
	incoming, err := l.ask(whole, piped)
	if err == nil && !inTime() {
		err = errors.Join(ctx.Err(), incoming.Close())
	}
	if err != nil {
		cancel()
		ended()
		return nil, err
	}
	l.o.Observer.StreamOpened()
	go func() {
		piped.Fill(incoming)
		_ = incoming.Close()
		cancel()
		l.o.Observer.StreamEnded()
		ended()
	}()
	return piped, nil
}

const longestReason = 1 << 10

// ask gives what the other side sends, once it has taken the stream.
func (l *Link) ask(ctx context.Context, piped *wire.Piped) (incoming io.ReadCloser, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, piped.Outgoing())
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	answer, err := l.conn.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	reason, _ := io.ReadAll(io.LimitReader(answer.Body, longestReason))
	_ = answer.Body.Close()
	return nil, fmt.Errorf("%w: %q", ErrRefused, strings.TrimSpace(string(reason)))
}
