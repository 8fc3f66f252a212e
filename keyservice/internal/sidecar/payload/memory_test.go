// What one direction of all connections takes.

package payload

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const kibibyte = 1 << 10

// shareOf gives a share.
func shareOf(t *testing.T, m *memory, bytes int) *share {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	s, err := m.share(ctx, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// waits tells whether what is done does not come to an end while everything stays as it is.
func waits(t *testing.T, do func(context.Context) error) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := do(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return err != nil
}

func takes(s *share, bytes int) func(context.Context) error {
	return func(ctx context.Context) error { return s.take(ctx, bytes) }
}

// whole fails if something was not given back.
func (m *memory) whole(t *testing.T) {
	t.Helper()
	if !m.shares.TryAcquire(m.total) || !m.large.TryAcquire(1) || m.reserved.Load() != 0 {
		t.Error("not everything was given back")
	}
}

// [CL-SDC-030] Shares are of what there is, and no more; one, however large, leaves room for three others.
func TestSharesOfMemory(t *testing.T) {
	m := newMemory(mebibyte)
	one := shareOf(t, m, 100*mebibyte)
	if one.left() != mebibyte/sharesAtLeast {
		t.Errorf("%d bytes", one.left())
	}
	if m.reserved.Load() != mebibyte/sharesAtLeast || m.waits.Load() != 0 {
		t.Errorf("%d bytes and %d waits are told", m.reserved.Load(), m.waits.Load())
	}
	others := []*share{shareOf(t, m, mebibyte), shareOf(t, m, mebibyte), shareOf(t, m, mebibyte-1)}
	another := func(ctx context.Context) error {
		s, err := m.share(ctx, 1)
		if err == nil {
			others = append(others, s)
		}
		return err
	}
	if !waits(t, another) {
		t.Error("there is more than there is")
	}
	one.end()
	if waits(t, another) {
		t.Error("what was given back is not there")
	}
	if m.waits.Load() != 1 {
		t.Errorf("%d waits", m.waits.Load())
	}
	for _, s := range others {
		s.end()
	}
	m.whole(t)
}

// [CL-SDC-030] One exchange at a time takes more than its share, for as long as it holds it.
func TestOneAtATimeTakesMore(t *testing.T) {
	m := newMemory(mebibyte)
	one, two := shareOf(t, m, kibibyte), shareOf(t, m, kibibyte)
	for _, s := range []*share{one, two} {
		if waits(t, takes(s, kibibyte)) {
			t.Fatal("a share was not there to be taken")
		}
	}
	if waits(t, takes(one, 1)) || waits(t, takes(one, 100*mebibyte)) {
		t.Error("nobody took more, and it waits")
	}
	if !waits(t, takes(two, 1)) {
		t.Error("two take more")
	}
	if two.used != kibibyte {
		t.Errorf("what was not given counts: %d", two.used)
	}
	one.end()
	if waits(t, takes(two, 1)) {
		t.Error("it waits for what was given back")
	}
	two.end()
	two.end()
	m.whole(t)
}

// [CL-SDC-030] Who is done with the work holds what it has made and lets another one work; where there is no room for that, it does not wait.
func TestSharesThatAreSettled(t *testing.T) {
	m := newMemory(mebibyte)
	for name, c := range map[string]struct {
		before, used, after int
		others              int // bytes that others have
		large               bool
	}{
		"less than expected":              {100 * kibibyte, 10 * kibibyte, 10 * kibibyte, 0, false},
		"nothing":                         {100 * kibibyte, 0, 0, 0, false},
		"more, and there is room":         {kibibyte, 500 * kibibyte, 500 * kibibyte, 256 * kibibyte, false},
		"more than there is":              {kibibyte, 5 * mebibyte, mebibyte, 0, false},
		"more, and there is no room":      {kibibyte, 900 * kibibyte, kibibyte, 256 * kibibyte, true},
		"more than there is, and no room": {kibibyte, 5 * mebibyte, kibibyte, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			other, one := shareOf(t, m, c.others), shareOf(t, m, c.before)
			if waits(t, takes(one, c.used)) {
				t.Fatal("it waits")
			}
			one.settle()
			if one.reserved != int64(c.after) || one.large != c.large {
				t.Errorf("%d bytes, large: %v", one.reserved, one.large)
			}
			if next := shareOf(t, m, 0); waits(t, takes(next, 1)) != c.large {
				t.Error("another one works, or does not")
			} else {
				next.end()
			}
			one.end()
			other.end()
		})
	}
	m.whole(t)
}

// A connection that ends does not wait on, and has nothing.
func TestWaitingForMemoryEnds(t *testing.T) {
	m := newMemory(mebibyte)
	all := []*share{shareOf(t, m, mebibyte), shareOf(t, m, mebibyte), shareOf(t, m, mebibyte), shareOf(t, m, mebibyte)}
	if waits(t, takes(all[0], mebibyte)) {
		t.Fatal("it waits")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if _, err := m.share(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	ended.Go(func() {
		if err := all[1].take(ctx, mebibyte); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	time.Sleep(20 * time.Millisecond)
	cancel()
	ended.Wait()
	for _, s := range all {
		s.end()
	}
	m.whole(t)
}

// Many exchanges that take what they expect, or more, or much more, all come to their end, and only one of them at a time works with more.
func TestMemoryUnderStorm(t *testing.T) {
	m := newMemory(mebibyte)
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	var working atomic.Int32
	exchange := func() error {
		expected := rand.IntN(mebibyte / 2)
		s, err := m.share(ctx, expected)
		if err != nil {
			return err
		}
		defer s.end()
		for range rand.IntN(5) {
			n := rand.IntN(expected + 2)
			if err := s.take(ctx, n); err != nil {
				return err
			}
			if s.large && working.Add(1) > 1 {
				return errors.New("two take more than their share")
			}
			time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
			if s.large {
				working.Add(-1)
			}
			if rand.IntN(2) == 0 {
				s.give(n)
			}
		}
		s.settle()
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		return nil
	}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 25 {
				if err := exchange(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	m.whole(t)
}
