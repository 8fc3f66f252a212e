// Connections that are not Kafka's: bytes in both directions.

package relay

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Copy copies until both sides have closed or the connection's time ends, which cuts it off; it closes both streams.
func Copy(ctx context.Context, conn *flow.Conn, client, upstream wire.Stream, _ Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	group, ctx := errgroup.WithContext(ctx)
	left := make(chan struct{}, 2)
	direction := func(from, to wire.Stream) func() error {
		return func() error {
			err := protect(func() error { return copyBytes(from, to) })
			left <- struct{}{}
			return err
		}
	}
	group.Go(direction(client, upstream))
	group.Go(direction(upstream, client))
	group.Go(func() error {
		for range 2 {
			select {
			case <-left:
			case <-ctx.Done():
			}
		}
		_ = errors.Join(client.Close(), upstream.Close()) // what is lost by then, the other side knows
		return nil
	})
	conn.OnDrain(func(string) { cancel(errDone) })
	defer conn.Stop()
	err := group.Wait()
	if errors.Is(context.Cause(ctx), errDone) {
		return nil
	}
	return err
}

func copyBytes(from, to wire.Stream) error {
	r, w := wire.NewReader(from), wire.NewWriter(to)
	defer r.Close()
	r.BeforeWait = w.Flush
	for {
		_, err := r.Peek(1)
		if errors.Is(err, io.EOF) {
			return to.CloseWrite()
		}
		if err != nil {
			return err
		}
		if err := r.CopyTo(w, r.Buffered()); err != nil {
			return err
		}
	}
}
