// Connections that are not Kafka's: bytes in both directions.

package relay

import (
	"context"
	"errors"
	"io"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Copy copies until both sides have closed or the connection's time ends, which cuts it off; it closes both streams.
func Copy(ctx context.Context, conn *flow.Conn, client, upstream wire.Stream, _ Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn.OnDrain(func(string) { cancel(errDone) })
	defer conn.Stop()
	end := func() { _ = errors.Join(client.Close(), upstream.Close()) } // what is lost by then, the other side knows
	return both(ctx, cancel, end,
		func() error { return copyBytes(client, upstream) }, func() error { return copyBytes(upstream, client) })
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
