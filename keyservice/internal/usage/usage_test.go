package usage

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded/embeddedtest"
)

var errLost = errors.New("the answer was lost")

// lossy is a real store of which some writes fail: half of those were done all the same, and only the answer was lost.
type lossy struct {
	store.Documents

	mu     sync.Mutex
	source *rand.Rand
	rate   int // one of so many fails; 0: none
	writes int
}

func (l *lossy) WriteDocument(ctx context.Context, kind, key string, version int, data []byte) error {
	l.mu.Lock()
	l.writes++
	fails, done := l.rate > 0 && l.source.IntN(l.rate) == 0, l.source.IntN(2) == 0
	l.mu.Unlock()
	if !fails {
		return l.Documents.WriteDocument(ctx, kind, key, version, data)
	}
	if done {
		if err := l.Documents.WriteDocument(ctx, kind, key, version, data); err != nil {
			return err
		}
	}
	return errLost
}

func opened(t *testing.T, rate int) *lossy {
	t.Helper()
	s := embeddedtest.New(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &lossy{Documents: s, source: rand.New(rand.NewPCG(seed, 0)), rate: rate}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func kid(i int) datakey.ID { return datakey.ID{byte(i * 16), byte(i)} }

func flush(t *testing.T, c *Counter) {
	t.Helper()
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// [CL-OPR-007] Several replicas report about the same keys while every third write fails or loses its answer: in the end
// everything is counted, once.
func TestCountsOnce(t *testing.T) {
	s := opened(t, 3)
	const replicas, keys, reports = 3, 5, 200
	counters := make([]*Counter, replicas)
	var wait sync.WaitGroup
	for i := range counters {
		counters[i] = New(s, quiet())
		wait.Go(func() {
			for n := range reports {
				counters[i].Report("claims", kid(n%keys), Counts{1, 10})
				if n%5 == 0 {
					_ = counters[i].Flush(t.Context()) // may fail
				}
			}
		})
	}
	wait.Wait()
	failed := 0
	for _, c := range counters {
		for c.Flush(t.Context()) != nil {
			failed++
		}
		if len(c.buckets) != 0 {
			t.Error("something waits on")
		}
	}
	fresh := New(s, quiet())
	for i := range keys {
		total, err := fresh.Total(t.Context(), "claims", kid(i))
		if want := int64(replicas * reports / keys); err != nil || total != (Counts{want, 10 * want}) {
			t.Errorf("key %d: %+v, not %d: %v", i, total, want, err)
		}
	}
}

// What was reported while a batch failed is written by the same flush as the batch: the last one is all there is.
func TestLastFlushWritesAll(t *testing.T) {
	s := opened(t, 0)
	c := New(s, quiet())
	c.Report("claims", kid(1), Counts{1, 1})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if c.Flush(gone) == nil {
		t.Fatal("written after its time")
	}
	c.Report("claims", kid(1), Counts{2, 2})
	flush(t, c)
	if total, err := New(s, quiet()).Total(t.Context(), "claims", kid(1)); err != nil || total != (Counts{3, 3}) || len(c.buckets) != 0 {
		t.Error(total, err, len(c.buckets))
	}
}

// What waits counts at once here, and on others when it is written.
func TestTotal(t *testing.T) {
	s := opened(t, 0)
	here, there := New(s, quiet()), New(s, quiet())
	total := func(c *Counter) Counts {
		t.Helper()
		counts, err := c.Total(t.Context(), "claims", kid(1))
		if err != nil {
			t.Fatal(err)
		}
		return counts
	}
	if total(here) != (Counts{}) {
		t.Fatal("something is counted")
	}
	here.Report("claims", kid(1), Counts{2, 3})
	here.Report("other", kid(2), Counts{7, 7})
	if total(here) != (Counts{2, 3}) || total(there) != (Counts{}) {
		t.Fatal(total(here), total(there))
	}
	flush(t, here)
	there.known = map[datakey.ID]known{} // as after two seconds
	if total(here) != (Counts{2, 3}) || total(there) != (Counts{2, 3}) {
		t.Fatal(total(here), total(there))
	}
	here.Report("claims", kid(1), Counts{1, 1})
	all, err := here.Of(t.Context(), "claims", []datakey.ID{kid(1), kid(2), kid(3)})
	if err != nil || all[kid(1)] != (Counts{3, 4}) || all[kid(2)] != (Counts{}) || len(all) != 3 {
		t.Fatal(all, err)
	}
	before := s.writes
	here.Report("claims", kid(1), Counts{})
	flush(t, here)
	flush(t, here)
	if s.writes != before+1 {
		t.Error(s.writes-before, "writes for one report")
	}
}

// Many ask about the same key at once: the store is asked once.
func TestTotalIsReadOnce(t *testing.T) {
	reads := &countingReads{Documents: opened(t, 0)}
	c := New(reads, quiet())
	var wait sync.WaitGroup
	for range 500 {
		wait.Go(func() {
			if _, err := c.Total(t.Context(), "claims", kid(1)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if reads.count > 5 {
		t.Error(reads.count, "reads")
	}
}

type countingReads struct {
	store.Documents

	mu    sync.Mutex
	count int
}

func (r *countingReads) ReadDocument(ctx context.Context, kind, key string) ([]byte, int, error) {
	r.mu.Lock()
	r.count++
	r.mu.Unlock()
	return r.Documents.ReadDocument(ctx, kind, key)
}

// A count that is at its largest stays there, whatever is added.
func TestPlus(t *testing.T) {
	for _, c := range []struct{ a, b, want Counts }{
		{Counts{1, 2}, Counts{3, 4}, Counts{4, 6}},
		{Counts{Max, 0}, Counts{1, Max}, Counts{Max, Max}},
		{Counts{Max, Max - 1}, Counts{Max, 1}, Counts{Max, Max}},
		{Counts{Max - 5, Max - 5}, Counts{6, 4}, Counts{Max, Max - 1}},
	} {
		if got := c.a.Plus(c.b); got != c.want {
			t.Errorf("%+v + %+v = %+v", c.a, c.b, got)
		}
	}
}

// [CL-OPR-012] A document never outgrows what the store takes, and the keys in use keep their counts.
func TestDocumentsAreBounded(t *testing.T) {
	s := opened(t, 0)
	c := New(s, quiet())
	for i := range maxKeys + 50 {
		c.Report("claims", datakey.ID{0x10, byte(i), byte(i >> 8), 1}, Counts{Max, Max})
		if i%1000 == 0 {
			flush(t, c)
		}
	}
	last := datakey.ID{0x10, 0xFF, 0xFF}
	for range maxBatches + 1 {
		c.Report("claims", last, Counts{1, 1})
		flush(t, c)
	}
	total, err := New(s, quiet()).Total(t.Context(), "claims", last)
	if err != nil || total.Records != maxBatches+1 {
		t.Error(total, err)
	}
	data, _, err := s.ReadDocument(t.Context(), placeOf("claims", last).kind, "claims")
	if err != nil || len(data) > store.MaxDocument {
		t.Error(len(data), "bytes", err)
	}
}

// A document that somebody else wrote is an error, never a count of nothing.
func TestDamaged(t *testing.T) {
	for i, text := range []string{`[]`, `{"keys":{"x":1}}`, `{"keys":{},"batches":[],"more":1}`, `{`} {
		s := opened(t, 0)
		if err := s.Documents.WriteDocument(t.Context(), placeOf("claims", kid(1)).kind, "claims", 0, []byte(text)); err != nil {
			t.Fatal(err)
		}
		c := New(s, quiet())
		if total, err := c.Total(t.Context(), "claims", kid(1)); err == nil {
			t.Error(i, total)
		}
		c.Report("claims", kid(1), Counts{1, 1})
		if c.Flush(t.Context()) == nil || len(c.buckets) != 1 {
			t.Error(i, "a report is gone")
		}
		if _, err := c.Of(t.Context(), "claims", []datakey.ID{kid(1)}); err == nil {
			t.Error(i, "listed")
		}
	}
}
