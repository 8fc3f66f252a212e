// What encrypting and decrypting take beside the frames themselves, bounded over all connections.

package payload

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/recordbatch"
)

// leastShare is what an exchange expects to take however short it is, in bytes.
const leastShare = 64 << 10

// memory is that of all exchanges of one direction: so many bytes for what they expect to take, and room for one at a time that takes more.
// Who has a part of it waits for nothing but the room for the one, and who has that one waits for no memory: nobody waits for ever. It is safe
// for concurrent use.
type memory struct {
	total    int64
	shares   *semaphore.Weighted
	large    *semaphore.Weighted
	reserved atomic.Int64 // bytes of all shares
	waits    atomic.Int64 // for either
}

func newMemory(total int) *memory {
	return &memory{total: int64(total), shares: semaphore.NewWeighted(int64(total)), large: semaphore.NewWeighted(1)}
}

// sharesAtLeast is how many exchanges have a share at the same time however much they expect to take.
const sharesAtLeast = 4

// share is what one exchange may take. It is for one goroutine at a time.
type share struct {
	of       *memory
	reserved int64
	used     int64
	large    bool
}

// share waits until so many bytes are free. Give them back with end.
func (m *memory) share(ctx context.Context, bytes int) (*share, error) {
	reserved := min(int64(bytes), m.total/sharesAtLeast)
	if !m.shares.TryAcquire(reserved) {
		m.waits.Add(1)
		if err := m.shares.Acquire(ctx, reserved); err != nil {
			return nil, err
		}
	}
	m.reserved.Add(reserved)
	return &share{of: m, reserved: reserved}, nil
}

// errNoRoom means that another exchange takes more than its share.
var errNoRoom = errors.New("there is no memory for more at the moment")

// take counts bytes as used. When they are more than was reserved, it waits as outgrow does.
func (s *share) take(ctx context.Context, bytes int) error {
	if s.takeNow(bytes) == nil {
		return nil
	}
	if err := s.outgrow(ctx); err != nil {
		return err
	}
	return s.takeNow(bytes)
}

// outgrow waits until no other exchange takes more than its share.
func (s *share) outgrow(ctx context.Context) error {
	if s.outgrowNow() == nil {
		return nil
	}
	s.of.waits.Add(1)
	err := s.of.large.Acquire(ctx, 1)
	s.large = err == nil
	return err
}

// takeNow is take for who must not wait, as the leases of keys would end. Errors: errNoRoom.
func (s *share) takeNow(bytes int) error {
	if s.used+int64(bytes) > s.reserved {
		if err := s.outgrowNow(); err != nil {
			return err
		}
	}
	s.used += int64(bytes)
	return nil
}

// outgrowNow is outgrow for who must not wait. Errors: errNoRoom.
func (s *share) outgrowNow() error {
	if !s.large && !s.of.large.TryAcquire(1) {
		return errNoRoom
	}
	s.large = true
	return nil
}

// give takes back what take has counted.
func (s *share) give(bytes int) {
	s.used -= int64(bytes)
}

// unbounded is more than anything takes, and can be added to.
const unbounded = math.MaxInt / 2

// left is how many bytes can be taken without waiting.
func (s *share) left() int {
	if s.large {
		return unbounded
	}
	return int(s.reserved - s.used)
}

// settle keeps what is used now and no more, as nothing will be added: who reads slowly holds what is to be read and not what it took to make it.
func (s *share) settle() {
	lasting := min(s.used, s.of.total)
	if more := lasting - s.reserved; more > 0 && !s.of.shares.TryAcquire(more) { // waiting for it could be for ever
		return
	} else if more < 0 {
		s.of.shares.Release(-more)
	}
	s.reserve(lasting)
	s.endLarge()
}

// end gives everything back.
func (s *share) end() {
	s.of.shares.Release(s.reserved)
	s.reserve(0)
	s.used = 0
	s.endLarge()
}

// reserve notes how much is reserved now.
func (s *share) reserve(bytes int64) {
	s.of.reserved.Add(bytes - s.reserved)
	s.reserved = bytes
}

func (s *share) endLarge() {
	if s.large {
		s.of.large.Release(1)
		s.large = false
	}
}

// decompressed gives the records of a batch. It waits only when they turn out to be more than fits into the share. Give them back with
// giveDecompressed.
func (s *share) decompressed(ctx context.Context, batch recordbatch.Batch) ([]byte, error) {
	records, err := batch.Decompressed(s.left())
	if errors.Is(err, recordbatch.ErrTooLarge) && s.left() < recordbatch.MaxDecompressed {
		if err := s.outgrow(ctx); err != nil {
			return nil, err
		}
		records, err = batch.Decompressed(recordbatch.MaxDecompressed)
	}
	if err != nil || !batch.Compressed() {
		return records, err
	}
	return records, s.take(ctx, len(records))
}

func (s *share) giveDecompressed(batch recordbatch.Batch, records []byte) {
	if batch.Compressed() {
		s.give(len(records))
	}
}
