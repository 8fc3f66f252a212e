// The side that takes streams.

package tunnel

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Host takes the streams of one connection. Make it with NewHost.
type Host struct {
	o      Options
	take   func(*Offer)
	server *http.Server

	mu      sync.Mutex
	over    bool
	running sync.WaitGroup
}

// NewHost makes one. take serves a stream from its beginning to its end.
func NewHost(o Options, take func(*Offer), log *slog.Logger) *Host {
	h := &Host{o: o, take: take}
	h.server = &http.Server{
		Handler: h, Protocols: protocols(), HTTP2: o.http2(), MaxHeaderBytes: headers, ReadHeaderTimeout: o.Stall, IdleTimeout: idle,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), DisableGeneralOptionsHandler: true,
	}
	return h
}

// Serve serves a connection until it and all its streams have ended.
func (h *Host) Serve(c net.Conn) {
	l := &only{conns: make(chan net.Conn, 1), done: make(chan struct{}), at: c.LocalAddr()}
	l.conns <- c
	gone := make(chan struct{})
	h.server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(gone)
			_ = l.Close()
		}
	}
	h.o.Observer.TunnelOpened()
	defer h.o.Observer.TunnelEnded()
	_ = h.server.Serve(l) // what fails here is that l is closed
	select {
	case <-l.conns: // it was never taken
		_ = c.Close()
	default:
		<-gone
	}
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.running.Wait()
}

// Drain takes no more streams; when the last has ended, or ctx has, the connection ends.
func (h *Host) Drain(ctx context.Context) {
	if h.server.Shutdown(ctx) != nil {
		_ = h.server.Close()
	}
}

func (h *Host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.running.Add(1)
	}
	return !h.over
}

// ServeHTTP serves one stream.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() { // nobody is there to read it
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer h.running.Done()
	switch {
	case r.Method == http.MethodHead && r.URL.Path == "/kafka":
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost || r.URL.Path != "/kafka" || r.Header.Get("Content-Type") != kind:
		http.NotFound(w, r)
	default:
		offer := &Offer{host: h, w: w, r: r, control: http.NewResponseController(w)}
		h.take(offer)
		offer.finish()
	}
}

// Offer is a stream that the other side wants.
type Offer struct {
	host    *Host
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	piped   *wire.Piped // nil: it was not accepted

	pumps sync.WaitGroup
}

// Refuse tells the other side why not. It is the last call.
func (o *Offer) Refuse(reason string) { http.Error(o.w, reason, http.StatusServiceUnavailable) }

// Accept gives the stream. It must be closed.
func (o *Offer) Accept() (wire.Stream, error) {
	o.w.WriteHeader(http.StatusOK)
	if err := o.control.Flush(); err != nil {
		return nil, err
	}
	o.host.o.Observer.StreamOpened()
	closed := make(chan struct{})
	o.piped = o.host.o.piped(nil, func() { close(closed) })
	sent := make(chan struct{})
	o.pumps.Go(func() { o.piped.Fill(o.r.Body) })
	o.pumps.Go(func() {
		defer close(sent)
		o.send()
	})
	o.pumps.Go(func() { o.end(closed, sent) })
	return o.piped, nil
}

// send sends what is written to the stream.
func (o *Offer) send() {
	from := o.piped.Outgoing()
	_, _ = io.CopyBuffer(flushed{o}, struct{ io.Reader }{from}, make([]byte, frameSize))
	_ = from.Close()
}

// flushed sends what is written at once.
type flushed struct{ *Offer }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	return n, errors.Join(err, f.control.Flush())
}

// end makes both pumps end once the stream is closed: that which sends has some time to do so, then the stream is reset.
func (o *Offer) end(closed, sent chan struct{}) {
	<-closed
	select {
	case <-sent:
	case <-time.After(leave):
		_ = o.control.SetWriteDeadline(time.Now().Add(-time.Second))
	}
	_ = o.control.SetReadDeadline(time.Now().Add(-time.Second))
}

// finish waits for what must not go on after the handler.
func (o *Offer) finish() {
	if o.piped == nil {
		return
	}
	_ = o.piped.Close()
	o.pumps.Wait()
	o.host.o.Observer.StreamEnded()
}

// only is a listener of one connection.
type only struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
	at    net.Addr
}

func (l *only) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *only) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *only) Addr() net.Addr { return l.at }
