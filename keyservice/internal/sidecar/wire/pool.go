// Package wire moves bytes: pooled buffers within a budget, a TLS connection whose writes are coalesced, readers and writers that
// copy large data once. It knows nothing of Kafka but that frames begin with their length.
package wire

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Sizes in bytes.
const (
	BufferSize  = 128 << 10 // of a pooled buffer: eight full TLS records
	smallBuffer = 16 << 10  // of one where many are in use: what hundreds of connections hold whose peers are slow
	overhead    = 64        // the part of so many of what TLS adds to it, at most
)

// largeBuffers is how many of BufferSize may be in use before small ones are given: 4 MiB.
const largeBuffers = 32

var (
	buffers = newPool(BufferSize, smallBuffer)
	sealed  = newPool(BufferSize+BufferSize/overhead, smallBuffer+smallBuffer/overhead) // for what such a buffer becomes within TLS records
)

// Buffer is memory of a pool for bytes on their way.
type Buffer struct{ Bytes []byte }

// pool has buffers of two sizes. It is safe for concurrent use.
type pool struct {
	largeSize, smallSize int
	large, small         sync.Pool // of *Buffer
	taken                atomic.Int64
}

func newPool(large, small int) *pool { return &pool{largeSize: large, smallSize: small} }

// take gives a large one, or a small one where many large ones are in use.
func (p *pool) take() *Buffer {
	if p.taken.Load() < largeBuffers {
		return p.takeLarge()
	}
	return p.takeSmall()
}

// takeSmall gives a small one, for what is gathered from small pieces.
func (p *pool) takeSmall() *Buffer { return get(&p.small, p.smallSize) }

// takeLarge gives a large one, for what does not fit into a small one.
func (p *pool) takeLarge() *Buffer {
	p.taken.Add(1)
	return get(&p.large, p.largeSize)
}

func get(from *sync.Pool, size int) *Buffer {
	if b, ok := from.Get().(*Buffer); ok {
		return b
	}
	return &Buffer{make([]byte, size)}
}

// put gives a buffer back.
func (p *pool) put(b *Buffer) {
	if len(b.Bytes) == p.largeSize {
		p.taken.Add(-1)
		p.large.Put(b)
		return
	}
	p.small.Put(b)
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
