// Package relay carries the requests of one connection to a broker and the responses back, past a chain of handlers. Frames that no
// handler wants to see are copied as bytes.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Options are the same for all connections.
type Options struct {
	Chain    *flow.Chain
	MaxFrame int           // bytes, in both directions
	InFlight int           // requests without an answer, on one connection; more are not read
	Drain    time.Duration // from the end of reading requests to the close
	Stall    time.Duration // for which a peer may leave a frame half sent; more for large ones

	// Requests and Responses have memory of their own: a request may wait until responses are delivered, never the other way round.
	Requests, Responses *wire.Budget
}

// ErrUnexpected means that a broker does not keep to the protocol.
var ErrUnexpected = errors.New("the broker sent a response that no request waits for")

// relay is one connection.
type relay struct {
	Options
	conn             *flow.Conn
	client, upstream wire.Stream
	requests         *wire.Reader
	responses        *wire.Reader
	toBroker         *wire.Writer

	queue queue

	mu       sync.Mutex // of the next three
	drained  bool       // no request is read any more
	within   bool       // a request is being read
	deadline time.Time  // of reading it; the zero time if none is set
	force    func()
}

// Serve relays until either side or the connection's time ends; it closes both streams. It gives nil when the client or the broker
// closed between two frames, or when the connection was drained.
func Serve(ctx context.Context, conn *flow.Conn, client, upstream wire.Stream, o Options) error {
	r := &relay{
		Options: o, conn: conn, client: client, upstream: upstream,
		requests: wire.NewReader(client), responses: wire.NewReader(upstream),
		toBroker: wire.NewWriter(upstream),
		queue:    newQueue(o.InFlight, wire.NewWriter(client)),
	}
	r.requests.BeforeWait = r.toBroker.Flush
	r.responses.BeforeWait = r.queue.flush
	return r.run(ctx)
}

// run ends both directions as soon as one fails or is through.
func (r *relay) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.force = func() { cancel(errDone) }
	r.conn.OnDrain(func(string) { r.drain() })
	defer r.conn.Stop()
	err := both(ctx, cancel, r.close, func() error { return r.sendAll(ctx) }, func() error { return r.deliverAll(ctx) })
	r.requests.Close()
	r.responses.Close()
	return err
}

// close closes both streams and wakes who waits for the queue.
func (r *relay) close() {
	_ = errors.Join(r.client.Close(), r.upstream.Close())
	r.queue.close()
}

// drain stops reading requests at the end of a frame: one that is being read is still sent on.
func (r *relay) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drained {
		return
	}
	r.drained = true
	if !r.within {
		_ = r.client.SetReadDeadline(time.Now())
	}
	time.AfterFunc(r.Drain, r.force)
}

func (r *relay) draining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drained
}

// begin and end enclose the reading of a request. A deadline costs time, so it is set only for a frame that is not there yet.
func (r *relay) begin(size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.within = true
	if r.deadline = r.patience(r.requests, size); r.deadline.IsZero() && !r.drained {
		return nil
	}
	return r.client.SetReadDeadline(r.deadline)
}

func (r *relay) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.within = false
	if r.drained || r.deadline.IsZero() {
		return nil
	}
	return r.client.SetReadDeadline(time.Time{})
}

// slowest is how many bytes of a frame must come each second, beside the time of Stall.
const slowest = 32 << 10

// patience is when a frame must be there: no time if it is already.
func (r *relay) patience(from *wire.Reader, size int) time.Time {
	if from.Buffered() >= 4+size {
		return time.Time{}
	}
	return r.until(size)
}

// until is when so many bytes of a frame must have come.
func (r *relay) until(size int) time.Time {
	return time.Now().Add(r.Stall + time.Duration(size/slowest)*time.Second)
}

// size waits for the next frame, for as long as it takes. Once its first byte is there, it has begun: the rest of its length must come in
// the time between begin and end.
func (r *relay) size(from *wire.Reader, begin, end func() error) (int, error) {
	if _, err := from.Peek(1); err != nil {
		return 0, err
	}
	if from.Buffered() >= 4 {
		return protocol.FrameSize(from, r.MaxFrame)
	}
	if err := begin(); err != nil {
		return 0, err
	}
	size, err := protocol.FrameSize(from, r.MaxFrame)
	return size, errors.Join(err, end())
}

// sendAll is the client's direction.
func (r *relay) sendAll(ctx context.Context) error {
	for {
		size, err := r.size(r.requests, func() error { return r.begin(0) }, r.end)
		switch {
		case errors.Is(err, io.EOF):
			return r.finish(ctx, leaveWithin)
		case err != nil && r.draining():
			return r.finish(ctx, r.Drain)
		case err != nil:
			return fmt.Errorf("reading a request: %w", err)
		}
		if err := errors.Join(r.begin(size), r.send(ctx, size), r.end()); err != nil {
			return fmt.Errorf("sending a request on: %w", err)
		}
		if r.draining() {
			return r.finish(ctx, r.Drain)
		}
	}
}

// leaveWithin is how long the answers to a client that has closed are waited for: closing earlier could make the broker lose what
// the client sent last.
const leaveWithin = 2 * time.Second

// finish waits until everything that was read is answered.
func (r *relay) finish(ctx context.Context, limit time.Duration) error {
	if err := r.toBroker.Flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.queue.wait(ctx)
	return errDone
}

// onward sends a frame of whole as it came: one in the reader's buffer stays there until it has been sent.
func (r *relay) onward(to *wire.Writer, frame []byte) error {
	if len(frame) <= wire.BufferSize {
		return to.Pass(frame)
	}
	return to.Write(frame)
}

// whole gives a frame with its length: in the reader's buffer if it fits there, else in memory of the budget.
func (r *relay) whole(ctx context.Context, budget *wire.Budget, from *wire.Reader, stream wire.Stream, size int) (
	p []byte, release func(), err error,
) {
	if 4+size <= wire.BufferSize {
		p, err = from.Peek(4 + size)
		return p, func() { from.Discard(4 + size) }, err
	}
	frame, err := budget.Get(ctx, 4+size)
	if err != nil {
		return nil, nil, err
	}
	if err := r.readParts(from, stream, frame.Bytes); err != nil {
		frame.Put()
		return nil, nil, err
	}
	return frame.Bytes, frame.Put, nil
}

// largePart is how much of a large frame has a time of its own, in bytes.
const largePart = wire.BufferSize

// readParts fills p, which is memory that others may wait for: a peer must go on sending to have it. The time begins here: to wait for memory
// is not the peer's fault.
func (r *relay) readParts(from *wire.Reader, stream wire.Stream, p []byte) error {
	for len(p) > 0 {
		part := p[:min(len(p), largePart)]
		if err := stream.SetReadDeadline(r.until(len(part))); err != nil {
			return err
		}
		if err := from.ReadFull(part); err != nil {
			return err
		}
		p = p[len(part):]
	}
	return nil
}
