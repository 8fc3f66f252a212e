package tunnel_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/tunnel"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// pooled is a pool before the ends of tunnels.
type pooled struct {
	*ends
	*tunnel.Pool

	life   time.Duration
	dialed atomic.Int64
	age    atomic.Int64
}

func startPool(t *testing.T, connections, streams int) *pooled {
	t.Helper()
	p := &pooled{ends: start(t, streams, 5*time.Second, accepted(echo)), life: time.Hour}
	p.Pool = tunnel.NewPool(connections, func() any { return [2]any{p.client.Generation(), p.age.Load()} })
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Close(ctx)
	})
	return p
}

func (p *pooled) dial(ctx context.Context) (*tunnel.Link, error) {
	p.dialed.Add(1)
	age := [2]any{p.client.Generation(), p.age.Load()}
	time.Sleep(10 * time.Millisecond)
	o, now := p.o, time.Now()
	o.Observer = &p.links
	return tunnel.NewLink(ctx, wire.NewWhole(p.secure()), o, tunnel.Life{Retires: now.Add(p.life / 2), Ends: now.Add(p.life), Age: age}, time.Second)
}

// stream opens one through the pool.
func (p *pooled) stream() (wire.Stream, error) {
	l, err := p.Get(p.Context(), "there", p.dial)
	if err != nil {
		return nil, err
	}
	return l.Open(p.Context(), nil, func() { p.Put(l) })
}

func (p *pooled) streams(n int) []wire.Stream {
	p.Helper()
	all := make([]wire.Stream, n)
	var opened sync.WaitGroup
	for i := range all {
		opened.Go(func() {
			var err error
			if all[i], err = p.stream(); err != nil {
				p.Error(err)
			}
		})
	}
	opened.Wait()
	if p.Failed() {
		p.FailNow()
	}
	return all
}

// [CL-SDC-040] However many streams come at once, there are no more connections than the pool is for; when all are full, that is told.
func TestPoolIsBounded(t *testing.T) {
	p := startPool(t, 3, 10)
	all := p.streams(30)
	if n := p.dialed.Load(); n != 3 {
		t.Error("connections:", n)
	}
	if _, err := p.stream(); !errors.Is(err, tunnel.ErrFull) {
		t.Error("a stream more:", err)
	}
	for _, s := range all {
		if err := errors.Join(back(s, random(1000)), s.Close()); err != nil {
			t.Error(err)
		}
	}
	p.eventually("no room is given back", func() bool {
		s, err := p.stream()
		return err == nil && s.Close() == nil
	})
	if n := p.dialed.Load(); n != 3 {
		t.Error("connections:", n)
	}
}

// [CL-SDC-044] A link is replaced when its time is nearly over, when there is another certificate, and when the other side wants no more streams; the
// streams that it has go on, and when the last has ended so does the link.
func TestPoolReplaces(t *testing.T) {
	for name, over := range map[string]func(*pooled){
		"time":        func(*pooled) { time.Sleep(1100 * time.Millisecond) },
		"certificate": func(p *pooled) { p.age.Add(1) },
		"the other side": func(p *pooled) {
			go (<-p.hosted).Drain(p.Context())
			time.Sleep(200 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPool(t, 1, 10)
			p.life = 2 * time.Second
			before := p.streams(2)
			over(p)
			after := p.streams(1)
			if n := p.dialed.Load(); n != 2 {
				t.Fatal("connections:", n)
			}
			for _, s := range before {
				if err := errors.Join(back(s, random(1000)), s.Close()); err != nil {
					t.Error(err)
				}
			}
			p.eventually("the old link stays", func() bool { return p.links.tunnels.Load() == 1 && p.hosts.tunnels.Load() == 1 })
			if err := back(after[0], random(1000)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A link is cut off when its time is over and streams do not end.
func TestPoolCuts(t *testing.T) {
	p := startPool(t, 1, 10)
	p.life = 500 * time.Millisecond
	s := p.streams(1)[0]
	_ = s.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, _, err := s.Receive(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it goes on:", err)
	}
	p.eventually("the link stays", func() bool { return p.links.tunnels.Load() == 0 })
}

// A peer without tunnels is not asked for each connection; one that cannot be reached is.
func TestPoolRemembers(t *testing.T) {
	p := tunnel.NewPool(2, func() any { return 0 })
	calls := 0
	failing := func(err error) func(context.Context) (*tunnel.Link, error) {
		return func(context.Context) (*tunnel.Link, error) {
			calls++
			return nil, err
		}
	}
	for range 3 {
		if _, err := p.Get(t.Context(), "old", failing(tunnel.ErrUnsupported)); !errors.Is(err, tunnel.ErrUnsupported) {
			t.Error(err)
		}
	}
	if calls != 1 {
		t.Error("asked", calls, "times")
	}
	for range 3 {
		if _, err := p.Get(t.Context(), "dead", failing(trust.ErrEnded)); !errors.Is(err, trust.ErrEnded) {
			t.Error(err)
		}
	}
	if calls != 4 {
		t.Error("asked", calls, "times")
	}
}

// Who waits for others to connect does so no longer than his time.
func TestPoolWaits(t *testing.T) {
	p := tunnel.NewPool(1, func() any { return 0 })
	release, began := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = p.Get(t.Context(), "slow", func(context.Context) (*tunnel.Link, error) {
			close(began)
			<-release
			return nil, trust.ErrEnded
		})
	}()
	<-began
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Get(ctx, "slow", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
