package rewrap

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/document"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded/embeddedtest"
)

// watched is a real store that counts the versions made, and whose rewrapping can fail.
type watched struct {
	store.Store

	mu       sync.Mutex
	fault    error
	advanced int
	rewraps  int
}

func (w *watched) AdvanceKEK(ctx context.Context, name string, version int) error {
	w.mu.Lock()
	w.advanced++
	w.mu.Unlock()
	return w.Store.AdvanceKEK(ctx, name, version)
}

func (w *watched) Rewrap(ctx context.Context, name string, done func(int)) error {
	w.mu.Lock()
	w.rewraps++
	fault := w.fault
	w.mu.Unlock()
	if fault != nil {
		return fault
	}
	return w.Store.Rewrap(ctx, name, done)
}

func opened(t *testing.T) *watched {
	t.Helper()
	s := embeddedtest.New(t)
	for range 300 { // more than one batch
		if _, err := s.Rotate(t.Context(), "claims"); err != nil {
			t.Fatal(err)
		}
	}
	return &watched{Store: s}
}

func newJob(s store.Store, instance string) *Job {
	return New(s, instance, slog.New(slog.DiscardHandler))
}

func progress(t *testing.T, j *Job) Progress {
	t.Helper()
	p, err := j.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func version(t *testing.T, s store.Store) int {
	t.Helper()
	v, err := s.KEKVersion(t.Context(), "embedded")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestJob(t *testing.T) {
	s := opened(t)
	j := newJob(s, "one")
	if p := progress(t, j); p.State != None {
		t.Fatal(p)
	}
	if err := j.work(t.Context()); err != nil || s.rewraps != 0 {
		t.Fatal("worked without being asked", err)
	}
	first, err := j.Start(t.Context(), "operator")
	if err != nil || first.State != Running || first.By != "operator" {
		t.Fatal(first, err)
	}
	if again, err := j.Start(t.Context(), "another"); err != nil || !again.Started.Equal(first.Started) || again.By != "operator" {
		t.Fatal("began anew while it runs", again, err)
	}
	if err := j.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := progress(t, j); p.State != Done || p.KEKs != 1 || p.KEKsDone != 1 || p.KeysDone != 300 || p.Finished.IsZero() || p.Error != "" {
		t.Fatalf("%+v", p)
	}
	if err := j.work(t.Context()); err != nil || s.rewraps != 1 || version(t, s) != 2 {
		t.Fatal("worked on after the end", err)
	}
	if _, err := j.Start(t.Context(), "operator"); err != nil {
		t.Fatal(err)
	}
	if err := j.work(t.Context()); err != nil || version(t, s) != 3 || progress(t, j).KeysDone != 300 {
		t.Fatal("not done a second time", err)
	}
}

// [CL-OPR-011] Another replica takes over when the one at work gives no sign of life, and makes no second version.
func TestTakeOver(t *testing.T) {
	s := opened(t)
	one, two := newJob(s, "one"), newJob(s, "two")
	if _, err := one.Start(t.Context(), "operator"); err != nil {
		t.Fatal(err)
	}
	s.fault = errors.New("killed here")
	if err := one.work(t.Context()); err == nil {
		t.Fatal("this test shows nothing")
	}
	s.fault = nil
	if err := two.work(t.Context()); err != nil || s.rewraps != 1 {
		t.Fatal("took over from one that lives", err)
	}
	for _, off := range []time.Duration{-abandoned - time.Second, time.Hour} { // by its own clock
		p := Progress{Beat: time.Now().Add(off), Instance: "one"}
		if !two.mine(p) {
			t.Errorf("left alone after %s", off)
		}
	}
	_, _, err := document.Update(t.Context(), s, documentKind, documentKey, func(p *Progress) error {
		p.Beat = time.Now().Add(-abandoned - time.Second)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := two.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := progress(t, one); p.State != Done || p.Instance != "two" || p.KeysDone != 300 || version(t, s) != 2 {
		t.Errorf("%+v, version %d", p, version(t, s))
	}
	if err := one.work(t.Context()); err != nil || s.rewraps != 2 {
		t.Error("worked on what another ended", err)
	}
}

// What stops it is told, and no more when it goes on. A store that is not available is tried again without a word.
func TestFailureIsTold(t *testing.T) {
	s := opened(t)
	j := newJob(s, "one")
	s.fault = errors.New("out of luck")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { j.Run(ctx); close(ended) }()
	if _, err := j.Start(t.Context(), "operator"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return progress(t, j).Error == "out of luck" })
	s.mu.Lock()
	s.fault = nil
	s.mu.Unlock()
	if _, err := j.Start(t.Context(), "operator"); err != nil { // wakes it
		t.Fatal(err)
	}
	eventually(t, func() bool { p := progress(t, j); return p.State == Done && p.Error == "" })
	cancel()
	<-ended
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatal("waited in vain")
}
