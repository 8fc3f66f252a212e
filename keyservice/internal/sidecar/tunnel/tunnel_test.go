package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust/trusttest"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/tunnel"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// counts implements tunnel.Observer.
type counts struct{ tunnels, streams, in, out atomic.Int64 }

func (c *counts) TunnelOpened() { c.tunnels.Add(1) }
func (c *counts) TunnelEnded()  { c.tunnels.Add(-1) }
func (c *counts) StreamOpened() { c.streams.Add(1) }
func (c *counts) StreamEnded()  { c.streams.Add(-1) }
func (c *counts) Moved(in, out int) {
	c.in.Add(int64(in))
	c.out.Add(int64(out))
}

// ends are both sides of a tunnel, over real TLS.
type ends struct {
	*testing.T

	client, server *trust.Source
	at             *net.TCPListener
	o              tunnel.Options
	hosts          counts // of the side that takes streams
	links          counts
	hosted         chan *tunnel.Host
	running        sync.WaitGroup
}

// start takes streams and does with each what the test says.
func start(t *testing.T, streams int, stall time.Duration, take func(*tunnel.Offer)) *ends {
	t.Helper()
	pki := testservice.NewPKI(t)
	e := &ends{
		T: t, client: trusttest.Source(t, pki, "client", time.Hour, tunnel.Protocol), server: trusttest.Source(t, pki, "server", time.Hour, tunnel.Protocol),
		o: tunnel.Options{Streams: streams, Stall: stall}, hosted: make(chan *tunnel.Host, 100),
	}
	var err error
	if e.at, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.at.Close()
		e.running.Wait()
	})
	e.running.Go(func() {
		for {
			c, err := e.at.AcceptTCP()
			if err != nil {
				return
			}
			e.running.Go(func() { e.host(c, take) })
		}
	})
	return e
}

func (e *ends) host(c *net.TCPConn, take func(*tunnel.Offer)) {
	defer c.Close()
	s := wire.NewServer(c, e.server.Server(), e.o.Stall)
	if s.Handshake(e.Context()) != nil {
		return
	}
	if s.ConnectionState().NegotiatedProtocol != tunnel.Protocol {
		e.Error("the protocol was not chosen")
	}
	o := e.o
	o.Observer = &e.hosts
	h := tunnel.NewHost(o, take, slog.New(slog.DiscardHandler))
	e.hosted <- h
	h.Serve(wire.NewWhole(s))
}

// secure shakes hands as the side that opens tunnels.
func (e *ends) secure() *wire.Secure {
	e.Helper()
	c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(e.at.Addr().(*net.TCPAddr).AddrPort())) //nolint:forcetypeassert // of a TCP listener
	if err != nil {
		e.Fatal(err)
	}
	cfg, _, err := e.client.Client("localhost")
	if err != nil {
		e.Fatal(err)
	}
	cfg.NextProtos = []string{tunnel.Protocol}
	s := wire.NewClient(c, cfg, e.o.Stall)
	e.Cleanup(func() { s.Close() })
	if err := s.Handshake(e.Context()); err != nil {
		e.Fatal(err)
	}
	return s
}

func (e *ends) link() (*tunnel.Link, error) {
	const life = time.Hour
	o, now := e.o, time.Now()
	o.Observer = &e.links
	return tunnel.NewLink(e.Context(), wire.NewWhole(e.secure()), o,
		tunnel.Life{Retires: now.Add(life * 4 / 5), Ends: now.Add(life), Reason: "age", Age: e.client.Generation()}, time.Second)
}

// open gives a stream of a new link.
func (e *ends) open() (*tunnel.Link, wire.Stream) {
	e.Helper()
	l, err := e.link()
	if err != nil {
		e.Fatal(err)
	}
	return l, e.another(l)
}

func (e *ends) another(l *tunnel.Link) wire.Stream {
	e.Helper()
	s, err := l.Open(e.Context(), nil, func() {})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { s.Close() })
	return s
}

func (e *ends) eventually(what string, holds func() bool) {
	e.Helper()
	for until := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			e.Fatal(what)
		}
	}
}

// accepted makes what serves an offer of what serves a stream.
func accepted(do func(wire.Stream)) func(*tunnel.Offer) {
	return func(o *tunnel.Offer) {
		if s, err := o.Accept(); err == nil {
			do(s)
			_ = s.Close()
		}
	}
}

func echo(s wire.Stream) {
	for {
		buf, n, err := s.Receive()
		if err != nil {
			return
		}
		if s.WriteAll(net.Buffers{buf.Bytes[:n]}) != nil {
			return
		}
	}
}

func random(n int) []byte {
	p := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = source.Read(p)
	return p
}

// back sends p and reads as much.
func back(s wire.Stream, p []byte) error {
	sent := make(chan error, 1)
	go func() { sent <- s.WriteAll(net.Buffers{p[:len(p)/2], p[len(p)/2:]}) }()
	got := make([]byte, len(p))
	if _, err := io.ReadFull(s, got); err != nil {
		return err
	}
	if !bytes.Equal(got, p) {
		return errors.New("other bytes came back")
	}
	return <-sent
}

// Streams carry what is sent, of any size, in both directions at once, and end.
func TestStreams(t *testing.T) {
	e := start(t, 100, 5*time.Second, accepted(echo))
	l, first := e.open()
	var all sync.WaitGroup
	for i := range 99 {
		s := e.another(l)
		all.Go(func() {
			if err := back(s, random(1+i*i*20)); err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
			_ = s.Close()
		})
	}
	all.Wait()
	if err := back(first, random(3<<20)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(first.CloseWrite(), noMore(first)); err != nil {
		t.Error("the end of a stream:", err)
	}
	e.eventually("streams are left", func() bool { return e.links.streams.Load()+e.hosts.streams.Load() == 0 })
	if in, out := e.links.in.Load(), e.hosts.out.Load(); in != out || in < 3<<20 || e.links.tunnels.Load() != 1 {
		t.Error(in, out, e.links.tunnels.Load())
	}
}

func noMore(s wire.Stream) error {
	if n, err := s.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%d bytes, %w", n, err)
	}
	return nil
}

// A stream that nobody reads, in either direction, holds back its writer and no other stream, and takes no more memory than its window.
func TestSlowReader(t *testing.T) {
	held := make(chan struct{})
	var hosted atomic.Int64
	e := start(t, 16, time.Hour, accepted(func(s wire.Stream) {
		switch first, err := readOne(s); {
		case err != nil:
		case first == 'n':
			<-held
		case first == 'w':
			for s.WriteAll(net.Buffers{make([]byte, 1000)}) == nil {
				hosted.Add(1000)
			}
		default:
			echo(s)
		}
	}))
	defer close(held)
	l, err := e.link()
	if err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	const slow = 4 // in each direction: together more than the window of a connection that is not made for them
	for range slow {
		s := e.another(l)
		go func() {
			_ = s.WriteAll(net.Buffers{[]byte("n")})
			for s.WriteAll(net.Buffers{make([]byte, 1000)}) == nil {
				written.Add(1000)
			}
		}()
		if err := e.another(l).WriteAll(net.Buffers{[]byte("w")}); err != nil {
			t.Fatal(err)
		}
	}
	settled := func(n *atomic.Int64) int64 {
		for {
			before := n.Load()
			time.Sleep(100 * time.Millisecond)
			if before > 0 && n.Load() == before {
				return before
			}
		}
	}
	for _, n := range []*atomic.Int64{&written, &hosted} {
		if got := settled(n); got > slow*3*tunnel.Window {
			t.Errorf("%d bytes were taken of streams that nobody reads", got)
		}
	}
	for range 8 {
		s := e.another(l)
		if err := errors.Join(s.WriteAll(net.Buffers{[]byte("e")}), back(s, random(200_000))); err != nil {
			t.Error("a stream beside it:", err)
		}
	}
}

func readOne(s wire.Stream) (byte, error) {
	var p [1]byte
	_, err := s.Read(p[:])
	return p[0], err
}

// A write that makes no progress ends after the time of stall, and its stream with it; a tunnel goes on.
func TestStall(t *testing.T) {
	held := make(chan struct{})
	e := start(t, 10, 300*time.Millisecond, accepted(func(s wire.Stream) {
		if first, err := readOne(s); err == nil && first == 'n' {
			<-held
		}
		echo(s)
	}))
	defer close(held)
	l, s := e.open()
	if err := s.WriteAll(net.Buffers{[]byte("n")}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.WriteAll(net.Buffers{make([]byte, 1<<20)}); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Fatal(err, time.Since(began))
	}
	other := e.another(l)
	if err := errors.Join(other.WriteAll(net.Buffers{[]byte("e")}), back(other, random(5000))); err != nil {
		t.Error(err)
	}
}

// Who reads no more by a deadline can still answer, however much the other side goes on sending: this is how connections are drained.
func TestDrain(t *testing.T) {
	e := start(t, 10, 5*time.Second, accepted(func(s wire.Stream) {
		if _, err := readOne(s); err != nil {
			return
		}
		_ = s.SetReadDeadline(time.Now())
		if _, err := s.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the deadline does not end a read:", err)
		}
		time.Sleep(200 * time.Millisecond)
		if err := s.WriteAll(net.Buffers{random(100_000)}); err != nil {
			t.Error("no answer is possible:", err)
		}
	}))
	_, s := e.open()
	go func() {
		for s.WriteAll(net.Buffers{make([]byte, 10_000)}) == nil {
			continue
		}
	}()
	got := make([]byte, 100_000)
	if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, random(100_000)) {
		t.Fatal("the answer is not whole:", err)
	}
	if err := noMore(s); err != nil {
		t.Error(err)
	}
}

// Deadlines end what waits, in the side that opens streams too, and can be set anew.
func TestDeadlines(t *testing.T) {
	e := start(t, 10, 5*time.Second, accepted(echo))
	_, s := e.open()
	for range 3 {
		_ = s.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, _, err := s.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	_ = s.SetReadDeadline(time.Time{})
	if err := back(s, random(70_000)); err != nil {
		t.Error(err)
	}
}

// What is refused is told, with the reason.
func TestRefused(t *testing.T) {
	e := start(t, 10, 5*time.Second, func(o *tunnel.Offer) { o.Refuse("no room\nfor you") })
	l, err := e.link()
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	if _, err := l.Open(t.Context(), nil, func() { ended++ }); !errors.Is(err, tunnel.ErrRefused) || !bytes.Contains([]byte(err.Error()), []byte(`"no room\nfor you"`)) {
		t.Error(err)
	}
	if ended != 1 {
		t.Error("its end was told", ended, "times")
	}
}

// Whoever waits for a stream longer than his time gets none, and the tunnel goes on.
func TestOpenInTime(t *testing.T) {
	var ill atomic.Bool
	ill.Store(true)
	release := make(chan struct{})
	e := start(t, 10, 5*time.Second, func(o *tunnel.Offer) {
		if ill.Load() {
			<-release
			return
		}
		accepted(echo)(o)
	})
	l, err := e.link()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := l.Open(ctx, nil, func() {}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ill.Store(false)
	close(release)
	if err := back(e.another(l), random(100)); err != nil {
		t.Error(err)
	}
}

// When the connection beneath is cut, its streams end with an error, on both sides.
func TestCut(t *testing.T) {
	met := make(chan error, 1)
	e := start(t, 10, 5*time.Second, accepted(func(s wire.Stream) {
		_, _ = readOne(s)
		_, _, err := s.Receive()
		met <- err
	}))
	s := e.secure()
	o := e.o
	o.Observer = &e.links
	l, err := tunnel.NewLink(t.Context(), wire.NewWhole(s), o, tunnel.Life{Retires: time.Now().Add(time.Hour), Ends: time.Now().Add(time.Hour)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	stream := e.another(l)
	if err := stream.WriteAll(net.Buffers{[]byte("x")}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	_ = s.Close()
	if err := <-met; err == nil || errors.Is(err, io.EOF) {
		t.Error("it seems to have ended as it should:", err)
	}
	if _, _, err := stream.Receive(); err == nil || errors.Is(err, io.EOF) {
		t.Error("it seems to have ended as it should:", err)
	}
	e.eventually("the tunnel is still counted", func() bool { return e.links.tunnels.Load()+e.hosts.tunnels.Load() == 0 })
}
