// Package wire moves bytes: pooled buffers within a budget, a TLS connection whose writes are coalesced, readers and writers that
// copy large data once. It knows nothing of Kafka but that frames begin with their length.
package wire

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Sizes in bytes.
const (
	BufferSize = 128 << 10                  // of a pooled buffer: eight full TLS records
	sealedSize = BufferSize + BufferSize/64 // of one for what such a buffer becomes within TLS records
)

var (
	buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}
	sealed  = sync.Pool{New: func() any { return new([sealedSize]byte) }}
)

func takeBuffer() *[BufferSize]byte {
	if b, ok := buffers.Get().(*[BufferSize]byte); ok {
		return b
	}
	return new([BufferSize]byte)
}

func takeSealed() *[sealedSize]byte {
	if b, ok := sealed.Get().(*[sealedSize]byte); ok {
		return b
	}
	return new([sealedSize]byte)
}

// Budget bounds the memory of frames that are read whole, over all connections. It is safe for concurrent use.
type Budget struct {
	total int64
	free  *semaphore.Weighted
	pools [64]sync.Pool // of []byte, by the logarithm of the size
}

// NewBudget makes one of so many bytes.
func NewBudget(total int64) *Budget {
	return &Budget{total: total, free: semaphore.NewWeighted(total)}
}

// Frame is memory for one frame.
type Frame struct {
	Bytes  []byte
	budget *Budget
	whole  *[]byte
}

// Get waits until size bytes are free. Give them back with Put.
func (b *Budget) Get(ctx context.Context, size int) (Frame, error) {
	class := bits.Len(uint(max(size, 1) - 1)) // #nosec G115 -- positive
	if int64(1)<<class > b.total {
		return Frame{}, fmt.Errorf("a frame of %d bytes does not fit into the budget of %d (limits.memory)", size, b.total)
	}
	if err := b.free.Acquire(ctx, 1<<class); err != nil {
		return Frame{}, err
	}
	whole, ok := b.pools[class].Get().(*[]byte)
	if !ok {
		fresh := make([]byte, 1<<class)
		whole = &fresh
	}
	return Frame{Bytes: (*whole)[:size], budget: b, whole: whole}, nil
}

// Put gives the memory back. It must not be used any more.
func (f Frame) Put() {
	if f.budget == nil {
		return
	}
	size := cap(*f.whole)
	f.budget.pools[bits.Len(uint(size-1))].Put(f.whole) // #nosec G115 -- positive
	f.budget.free.Release(int64(size))
}
