package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire/wiretest"
)

// exhaust takes all large buffers, for the time of a test.
func exhaust(t *testing.T, p *pool) {
	t.Helper()
	for range largeBuffers {
		b := p.take()
		if len(b.Bytes) != p.largeSize {
			t.Fatalf("a buffer of %d bytes before the large ones were taken", len(b.Bytes))
		}
		t.Cleanup(func() { p.put(b) })
	}
	small := p.take()
	if len(small.Bytes) != p.smallSize {
		t.Fatalf("a buffer of %d bytes after the large ones were taken", len(small.Bytes))
	}
	p.put(small)
}

// A reader looks at frames as a relay does: small and large ones in turn, some passed on from its own buffer. What waits to be
// sent must not be in a buffer that was given back.
func TestLargeFramesInSmallBuffers(t *testing.T) {
	before := buffers.taken.Load()
	exhaust(t, buffers)
	in, from := wiretest.Connected(t)
	to, out := wiretest.Connected(t)
	sizes := []int{10, 5000, BufferSize, 1, 60_000, 30_000, smallBuffer, smallBuffer + 1, 200, BufferSize - 1, 7000, 7000, 100_000}
	sent := make([][]byte, len(sizes))
	source := rand.NewChaCha8([32]byte{1})
	for i, size := range sizes {
		sent[i] = make([]byte, size)
		_, _ = source.Read(sent[i])
	}
	go func() {
		_, _ = in.Write(bytes.Join(sent, nil))
		_ = in.CloseWrite()
	}()
	received := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(out)
		received <- all
	}()

	r, w := NewReader(Plain(from, time.Minute)), NewWriter(Plain(to, time.Minute))
	r.BeforeWait = func() error {
		err := w.Flush()
		overwriteSmall() // as other connections would
		return err
	}
	for i, size := range sizes {
		p, err := r.Peek(size)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p, sent[i]) {
			t.Fatalf("frame %d of %d bytes is read as another", i, size)
		}
		if err := w.Pass(p); err != nil {
			t.Fatal(err)
		}
		r.Discard(size)
	}
	if _, err := r.Peek(1); !errors.Is(err, io.EOF) {
		t.Fatalf("at the end: %v", err)
	}
	r.Close()
	_ = to.CloseWrite()
	if !bytes.Equal(<-received, bytes.Join(sent, nil)) {
		t.Fatal("what arrives is not what was sent")
	}
	if taken := buffers.taken.Load(); taken != before+largeBuffers {
		t.Fatalf("%d large buffers were not given back", taken-before-largeBuffers)
	}
}

func overwriteSmall() {
	b := buffers.take()
	clear(b.Bytes)
	buffers.put(b)
}

// Hundreds of connections whose peers take nothing hold small buffers, and large ones come back when they are given back.
func TestManyBuffers(t *testing.T) {
	p := newPool(BufferSize, smallBuffer)
	const many = 1000
	all := make([]*Buffer, many)
	total := 0
	for i := range all {
		all[i] = p.take()
		total += len(all[i].Bytes)
	}
	if limit := largeBuffers*BufferSize + many*smallBuffer; total > limit {
		t.Fatalf("%d buffers hold %d bytes, over %d", many, total, limit)
	}
	for _, b := range all {
		p.put(b)
	}
	if b := p.take(); len(b.Bytes) != BufferSize {
		t.Fatalf("a buffer of %d bytes after all were given back", len(b.Bytes))
	}
}

// What TLS makes of many pieces goes through small buffers too.
func TestCoalescingInSmallBuffers(t *testing.T) {
	exhaust(t, sealed)
	near, far := wiretest.Connected(t)
	c := newCoalescer(near, time.Minute)
	c.begin()
	sent := make([]byte, 20*16_406) // records with their overhead
	_, _ = rand.NewChaCha8([32]byte{2}).Read(sent)
	failure := make(chan error, 1)
	go func() {
		var err error
		for record := range slices.Chunk(sent, 16_406) {
			_, e := c.Write(record)
			err = errors.Join(err, e)
		}
		failure <- errors.Join(err, c.flush(), near.CloseWrite())
	}()
	all, err := io.ReadAll(far)
	if err = errors.Join(err, <-failure); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(all, sent) {
		t.Fatalf("%d bytes arrive of %d, or others", len(all), len(sent))
	}
}
