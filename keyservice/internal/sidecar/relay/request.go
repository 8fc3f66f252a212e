// The client's direction: one request.

package relay

import (
	"context"
	"errors"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
)

// send takes one request.
func (r *relay) send(ctx context.Context, size int) error {
	x, header, err := r.head(size)
	if errors.Is(err, protocol.ErrNewer) {
		return r.answerNewer(ctx, header, size)
	}
	if err != nil {
		return err
	}
	if r.Chain.Wants(x.Key, x.Version).Request == flow.Body {
		return r.sendDecoded(ctx, x, header, size)
	}
	if err := r.Chain.Request(ctx, x); err != nil {
		return err
	}
	if x.Answered() {
		return errors.Join(r.requests.Skip(4+size), r.answer(ctx, x))
	}
	if err := r.expect(ctx, x); err != nil {
		return err
	}
	return r.requests.CopyTo(r.toBroker, 4+size)
}

// answerNewer answers an ApiVersions of a version that is yet to come, as a broker does that is older than its client [CL-SDC-016].
func (r *relay) answerNewer(ctx context.Context, h protocol.Header, size int) error {
	x := &flow.Exchange{Conn: r.conn, Key: h.Key, CorrelationID: h.CorrelationID, Response: protocol.UnsupportedVersion()}
	return errors.Join(r.requests.Skip(4+size), r.answer(ctx, x))
}

// head reads a request's header, and of Produce as far as acks.
func (r *relay) head(size int) (*flow.Exchange, protocol.Header, error) {
	p, err := r.requests.Peek(4 + min(size, smallHeader))
	if err != nil {
		return nil, protocol.Header{}, err
	}
	x, header, err := r.exchange(p[4:], size)
	if errors.Is(err, protocol.ErrCut) && size > smallHeader { // a very long header
		if p, err = r.requests.Peek(4 + min(size, protocol.HeaderLimit)); err != nil {
			return nil, header, err
		}
		x, header, err = r.exchange(p[4:], size)
	}
	return x, header, err
}

// smallHeader is enough for the header of nearly every request.
const smallHeader = 256

func (r *relay) exchange(p []byte, size int) (*flow.Exchange, protocol.Header, error) {
	header, err := protocol.ParseHeader(p)
	if err != nil {
		return nil, header, err
	}
	answered, err := protocol.ExpectsResponse(header, p[header.Size:])
	if err != nil {
		return nil, header, err
	}
	return &flow.Exchange{
		Conn: r.conn, Key: header.Key, Version: header.Version, CorrelationID: header.CorrelationID, ClientID: header.ClientID,
		Started: time.Now(), RequestSize: size, NoResponse: !answered,
	}, header, nil
}

// sendDecoded takes one request that a handler wants to see whole.
func (r *relay) sendDecoded(ctx context.Context, x *flow.Exchange, header protocol.Header, size int) error {
	frame, release, err := r.whole(ctx, r.Requests, r.requests, r.client, size)
	if err != nil {
		return err
	}
	defer release()
	p := frame[4:]
	if x.Request, err = protocol.DecodeRequest(header, p[header.Size:]); err != nil {
		return err
	}
	var held flow.Holds
	defer held.GiveBack()
	x.HoldIn(&held)
	err = r.Chain.Request(ctx, x)
	request := x.Request
	x.Request = nil // what waits for its response holds no records
	switch {
	case err != nil:
		return err
	case x.Answered():
		return r.answer(ctx, x)
	}
	if err := r.expect(ctx, x); err != nil {
		return err
	}
	if !x.RequestChanged() {
		return r.onward(r.toBroker, frame)
	}
	return r.toBroker.Write(protocol.AppendRequest(make([]byte, 0, len(frame)+spare), p[:header.Size], request))
}

// spare is how much longer a changed frame may be without another allocation.
const spare = 1 << 10

// expect notes a request that the broker will answer.
func (r *relay) expect(ctx context.Context, x *flow.Exchange) error {
	if x.NoResponse {
		return nil
	}
	if r.queue.full() { // what was sent must reach the broker, or nothing would ever leave the queue
		if err := r.toBroker.Flush(); err != nil {
			return err
		}
	}
	return r.queue.push(ctx, entry{x: x})
}

// answer delivers what a handler answered, in its turn.
func (r *relay) answer(ctx context.Context, x *flow.Exchange) error {
	if x.NoResponse {
		return nil
	}
	if err := r.toBroker.Flush(); err != nil { // the answer may have to wait for those before it
		return err
	}
	return r.queue.push(ctx, entry{x: x, frame: protocol.AppendAnswer(nil, x.CorrelationID, x.Response)})
}
