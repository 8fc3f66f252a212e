// The broker's direction.

package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
)

// deliverAll is the broker's direction.
func (r *relay) deliverAll(ctx context.Context) error {
	for {
		size, err := r.size(r.responses,
			func() error { return r.upstream.SetReadDeadline(r.until(0)) }, func() error { return r.upstream.SetReadDeadline(time.Time{}) })
		if errors.Is(err, io.EOF) {
			return errDone
		}
		if err != nil {
			return fmt.Errorf("reading a response: %w", err)
		}
		if err := r.deliverWithin(ctx, size); err != nil {
			return fmt.Errorf("delivering a response: %w", err)
		}
	}
}

// deliverWithin bounds the time in which the rest of a response must come; there is no such bound between responses.
func (r *relay) deliverWithin(ctx context.Context, size int) error {
	until := r.patience(r.responses, size)
	if until.IsZero() {
		return r.deliver(ctx, size)
	}
	return errors.Join(r.upstream.SetReadDeadline(until), r.deliver(ctx, size), r.upstream.SetReadDeadline(time.Time{}))
}

// deliver takes one response.
func (r *relay) deliver(ctx context.Context, size int) error {
	p, err := r.responses.Peek(8)
	if err != nil {
		return err
	}
	x := r.queue.head()
	if x == nil {
		return ErrUnexpected
	}
	if got := int32(binary.BigEndian.Uint32(p[4:])); got != x.CorrelationID { // #nosec G115 -- signed on the wire
		return fmt.Errorf("%w: correlation id %d, expected %d", ErrUnexpected, got, x.CorrelationID)
	}
	x.ResponseSize = size
	if want := r.Chain.Wants(x.Key, x.Version).Response; want >= flow.Tagged {
		err = r.deliverWhole(ctx, x, size, want)
	} else {
		err = r.deliverBytes(ctx, x, size)
	}
	if err != nil {
		return err
	}
	return r.queue.pop()
}

func (r *relay) deliverBytes(ctx context.Context, x *flow.Exchange, size int) error {
	if err := r.Chain.Response(ctx, x); err != nil {
		return err
	}
	return r.responses.CopyTo(r.queue.out, 4+size)
}

func (r *relay) deliverWhole(ctx context.Context, x *flow.Exchange, size int, want flow.Level) error {
	frame, release, err := r.whole(ctx, r.Responses, r.responses, r.upstream, size)
	if err != nil {
		return err
	}
	defer release()
	decode := want == flow.Body
	if want == flow.Tagged {
		if decode, err = protocol.Tagged(x.Key, x.Version, frame[4:]); err != nil {
			return err
		}
	}
	header := 0
	if decode {
		if x.Response, header, err = protocol.DecodeResponse(x.Key, x.Version, frame[4:]); err != nil {
			return err
		}
	}
	var held flow.Holds
	defer held.GiveBack()
	x.HoldIn(&held)
	if err := r.Chain.Response(ctx, x); err != nil {
		return err
	}
	if !x.ResponseChanged() {
		return r.onward(r.queue.out, frame)
	}
	return r.queue.out.Write(protocol.AppendResponse(make([]byte, 0, len(frame)+spare), frame[4:4+header], x.Response))
}
