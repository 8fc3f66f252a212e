// Peers that have a certificate and do with a tunnel what no sidecar does, on either side.

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// rawTunnel is a tunnel as an attacker speaks it, frame by frame.
type rawTunnel struct {
	*http2.Framer

	conn    *tls.Conn
	taken   int // streams that were answered with 200; to be read when listen has ended
	headers bytes.Buffer
	encoder *hpack.Encoder
	pongs   chan struct{} // a ping was answered: so was what had been sent before it
	updates chan struct{} // data of a stream was read
}

func openRaw(t *testing.T, cfg *tls.Config, address string, settings ...http2.Setting) *rawTunnel {
	t.Helper()
	c := dialTLS(t, cfg, address, tunnelProtocol)
	r := &rawTunnel{Framer: http2.NewFramer(c, c), conn: c, pongs: make(chan struct{}, 1), updates: make(chan struct{}, 1)}
	r.encoder = hpack.NewEncoder(&r.headers)
	r.AllowIllegalWrites = true
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rawTunnel) block(more ...string) []byte {
	r.headers.Reset()
	fields := append([]string{":method", "POST", ":scheme", "http", ":authority", "tunnel", ":path", "/kafka", "content-type", "application/vnd.apache.kafka"}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = r.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(r.headers.Bytes())
}

func (r *rawTunnel) open(stream uint32) error {
	return r.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: r.block(), EndHeaders: true})
}

// listen reads all that comes, and tells in the end what it was.
func (r *rawTunnel) listen() chan string {
	said := make(chan string, 1)
	go func() {
		var all strings.Builder
		seen := map[string]bool{}
		say := func(what string) {
			if !seen[what] {
				seen[what] = true
				all.WriteString(" " + what)
			}
		}
		decoder := hpack.NewDecoder(4096, func(h hpack.HeaderField) {
			say(h.Name + "=" + h.Value)
			if h.Value == "200" {
				r.taken++
			}
		})
		for {
			frame, err := r.ReadFrame()
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					say("NOT CLOSED")
				}
				said <- all.String()
				return
			}
			switch one := frame.(type) {
			case *http2.GoAwayFrame:
				say("goaway=" + one.ErrCode.String())
			case *http2.RSTStreamFrame:
				say("reset=" + one.ErrCode.String())
			case *http2.HeadersFrame:
				_, _ = decoder.Write(one.HeaderBlockFragment())
			case *http2.PingFrame:
				if one.IsAck() {
					note(r.pongs)
				}
			case *http2.WindowUpdateFrame:
				if one.StreamID > 0 {
					note(r.updates)
				}
			}
		}
	}()
	return said
}

func note(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// unlessItEnds waits for something that comes before the end of a tunnel, which comes in time: its connection has a deadline.
func unlessItEnds[T any](t *testing.T, comes chan T, said chan string) (one T) {
	t.Helper()
	select {
	case one = <-comes:
	case got := <-said:
		t.Fatalf("the sidecar said%s", got)
	}
	return one
}

// [CL-SDC-045] Whatever a peer does on its tunnel costs it the stream or the tunnel, and nobody else anything.
func TestHostileTunnels(t *testing.T) {
	const streams = 20
	pki := testservice.NewPKI(t)
	far := tunnelled(t, pki, plainBroker(t, answering(make([]byte, 1000))), "tunnels: {}\n",
		fmt.Sprintf("tunnels: {streams: %d}\nlimits: {stall: 500ms, handshake: 1s}\n", streams))
	peer, address := peerTLS(t, pki), far.broker.Listeners["kafka"]
	attacks := map[string]struct {
		attack func(r *rawTunnel)
		want   string // in what the sidecar says
	}{
		"streams without end": {func(r *rawTunnel) {
			for stream := uint32(1); stream < 20_000 && r.open(stream) == nil; stream += 2 {
				continue
			}
		}, "reset=REFUSED_STREAM"},
		"streams that end at once": {func(r *rawTunnel) {
			for stream := uint32(1); stream < 20_000 && r.open(stream) == nil && r.WriteRSTStream(stream, http2.ErrCodeCancel) == nil; stream += 2 {
				continue
			}
		}, ""},
		"an absurd length": {func(r *rawTunnel) {
			_ = r.open(1)
			_, _ = r.conn.Write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1})
		}, "goaway=FRAME_SIZE_ERROR"},
		"a frame that is a byte too long": {func(r *rawTunnel) {
			_ = r.open(1)
			_, _ = r.conn.Write([]byte{0, 0x40, 1, 0, 0, 0, 0, 0, 1})
		}, "goaway=FRAME_SIZE_ERROR"},
		"half a frame": {func(r *rawTunnel) {
			_ = r.open(1)
			_, _ = r.conn.Write([]byte{0, 1, 0, 0, 0, 0, 0, 0, 1, 'x'})
			_ = r.conn.CloseWrite()
		}, ""},
		"absurd Kafka within": {func(r *rawTunnel) {
			_ = r.open(1)
			_ = r.WriteData(1, false, []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1})
			time.Sleep(time.Second)
			_ = r.WriteGoAway(0, http2.ErrCodeNo, nil)
		}, ":status=200"},
		"half a Kafka frame": {func(r *rawTunnel) {
			_ = r.open(1)
			_ = r.WriteData(1, false, heartbeat(1)[:7])
			time.Sleep(2 * time.Second)
			_ = r.WriteGoAway(0, http2.ErrCodeNo, nil)
		}, ":status=200"},
		"an endless header": {func(r *rawTunnel) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.block()})
			for part := bytes.Repeat([]byte{0x40, 1, 'a', 1, 'b'}, 1000); r.WriteContinuation(1, false, part) == nil; {
				continue
			}
		}, ""},
		"another path": {func(r *rawTunnel) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.block(":path", "/metrics"), EndHeaders: true, EndStream: true})
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: r.block("content-type", "text/html"), EndHeaders: true, EndStream: true})
			_ = r.WriteGoAway(0, http2.ErrCodeNo, nil)
		}, "=PROTOCOL_ERROR"},
		"pings": {func(r *rawTunnel) {
			for i := 0; i < 50_000 && r.WritePing(false, [8]byte{byte(i)}) == nil; i++ {
				continue
			}
		}, ""},
		"windows of too much": {func(r *rawTunnel) {
			_ = r.open(1)
			_ = r.WriteWindowUpdate(1, 1<<31-1)
			_ = r.WriteWindowUpdate(0, 1<<31-1)
		}, "FLOW_CONTROL_ERROR"},
	}
	t.Run("attacks", func(t *testing.T) { // at once: each waits for what the sidecar says
		for name, c := range attacks {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := openRaw(t, peer, address)
				said := r.listen()
				good := dial(t, far.bootstrap)
				c.attack(r)
				time.AfterFunc(2*time.Second, func() { _ = r.conn.CloseWrite() })
				if got := <-said; !strings.Contains(got, c.want) || strings.Contains(got, "NOT CLOSED") {
					t.Errorf("the sidecar said%s; want %q", got, c.want)
				}
				if name == "streams without end" && r.taken != streams {
					t.Errorf("%d streams were taken", r.taken)
				}
				if err := exchange(good, 3); err != nil {
					t.Error("another connection:", err)
				}
				good.Close()
			})
		}
		t.Run("silence", func(t *testing.T) {
			t.Parallel()
			if _, err := io.ReadAll(dialTLS(t, peer, address, tunnelProtocol)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it was not closed")
			}
		})
	})
	last := dial(t, far.bootstrap)
	if err := exchange(last, 1); err != nil {
		t.Error(err)
	}
	last.Close()
	eventually(t, "all streams to have ended", func() bool { return figure(t, far.broker, "cipherlane_sidecar_tunnel_streams") == 0 })
	if n := figure(t, far.broker, "cipherlane_sidecar_tunnels"); n > 4 {
		t.Error(n, "tunnels are left")
	}
}

// [CL-SDC-030] [CL-SDC-045] Tunnels full of streams whose answers are never read, or whose windows are full of frames of one byte, take bounded memory.
// What stalls the broker ends; what only waits for the broker stays until its tunnel ends.
func TestTunnelsNeverRead(t *testing.T) {
	const tunnels, streams = 5, 20
	pki := testservice.NewPKI(t)
	peer, over := peerTLS(t, pki), make(chan struct{})
	var bytewise bytes.Buffer // what the sidecar reads, and then 30,000 frames that it does not
	f := http2.NewFramer(&bytewise, nil)
	for stream := uint32(1); stream < 2*streams; stream += 2 {
		_ = f.WriteData(stream, false, bytes.Repeat(heartbeat(1), 2))
		for range 30_000 {
			_ = f.WriteData(stream, false, []byte{0})
		}
	}
	var requests bytes.Buffer
	f = http2.NewFramer(&requests, nil)
	for stream := uint32(1); stream < 2*streams; stream += 2 {
		_ = f.WriteData(stream, false, bytes.Repeat(heartbeat(1), 100))
	}
	for name, c := range map[string]struct {
		broker func(net.Conn)
		frames []byte
		stalls bool
	}{
		"answers that nobody reads": {answering(make([]byte, 1<<20)), requests.Bytes(), true},
		"frames of one byte":        {func(net.Conn) { <-over }, bytewise.Bytes(), false},
	} {
		t.Run(name, func(t *testing.T) {
			far := tunnelled(t, pki, plainBroker(t, c.broker), "tunnels: {}\n", fmt.Sprintf("tunnels: {streams: %d}\nlimits: {stall: 3s, in_flight: 1}\n", streams))
			before := rss(t, far.broker.PID())
			var raws []*rawTunnel
			for range tunnels {
				r := openRaw(t, peer, far.broker.Listeners["kafka"], http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				_ = r.listen()
				for stream := uint32(1); stream < 2*streams; stream += 2 {
					_ = r.open(stream)
				}
				time.Sleep(100 * time.Millisecond) // until brokers are connected
				if _, err := r.conn.Write(c.frames); err != nil {
					t.Fatal(err)
				}
				raws = append(raws, r)
			}
			eventually(t, "all streams", func() bool {
				return figure(t, far.broker, "cipherlane_sidecar_tunnel_streams_opened_total") == tunnels*streams
			})
			time.Sleep(time.Second)
			grown := rss(t, far.broker.PID()) - before
			t.Logf("memory grew by %d MiB", grown)
			if grown > 60 {
				t.Error("that is too much")
			}
			if c.stalls {
				eventually(t, "the stalled streams to end", func() bool { return figure(t, far.broker, "cipherlane_sidecar_tunnel_streams") == 0 })
			} else if n := figure(t, far.broker, "cipherlane_sidecar_tunnel_streams"); n != tunnels*streams {
				t.Error(n, "streams are left")
			}
			for _, r := range raws {
				r.conn.Close()
			}
			if !c.stalls {
				close(over)
			}
			eventually(t, "all tunnels to end", func() bool { return figure(t, far.broker, "cipherlane_sidecar_tunnels") == 0 })
		})
	}
}

// [CL-SDC-045] A peer that sends more than the window of a stream loses it.
func TestTunnelWindow(t *testing.T) {
	pki, over := testservice.NewPKI(t), make(chan struct{})
	defer close(over)
	first := make(chan error)
	far := tunnelled(t, pki, plainBroker(t, func(c net.Conn) {
		_, err := io.ReadFull(c, make([]byte, len(heartbeat(1))))
		first <- err
		<-over
	}), "tunnels: {}\n", "tunnels: {}\nlimits: {in_flight: 1}\n")
	for size, want := range map[int]bool{30_000: false, 40_000: true} {
		r := openRaw(t, peerTLS(t, pki), far.broker.Listeners["kafka"])
		said := r.listen()
		_ = r.open(1)
		_ = r.WriteData(1, false, bytes.Repeat(heartbeat(1), 2)) // the first goes on because the second has to wait: no more is read
		if err := unlessItEnds(t, first, said); err != nil {
			t.Fatal(err)
		}
		_ = r.WriteData(1, false, make([]byte, 5000)) // what fills the stream has this in its hands until the second goes on
		unlessItEnds(t, r.updates, said)
		for range size / 1000 {
			_ = r.WriteData(1, false, make([]byte, 1000))
		}
		_ = r.WritePing(false, [8]byte{})
		var got string
		select {
		case got = <-said:
		case <-r.pongs:
			r.conn.Close()
			got = <-said
		}
		if strings.Contains(got, "FLOW_CONTROL_ERROR") != want {
			t.Errorf("after %d bytes the sidecar said%s", size, got)
		}
	}
}

// fakeFarSide takes tunnels as no sidecar does.
func fakeFarSide(t *testing.T, pki *testservice.PKI, do func(*http2.Framer, net.Conn)) string {
	t.Helper()
	cfg := serverTLS(t, pki, "far")
	cfg.NextProtos = []string{tunnelProtocol}
	return plainBroker(t, func(c net.Conn) {
		s := tls.Server(c, cfg)
		if s.Handshake() != nil {
			return
		}
		f := http2.NewFramer(s, s)
		f.AllowIllegalWrites = true
		do(f, s)
	})
}

// [CL-SDC-045] A far side that does not keep to the protocol costs the clients that wanted it their connections, in time, and no other.
func TestHostileFarSide(t *testing.T) {
	preface := func(f *http2.Framer, c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		_ = f.WriteSettings()
	}
	answered := func(f *http2.Framer, c net.Conn, status string, until uint32) {
		preface(f, c)
		var block bytes.Buffer
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if h, ok := frame.(*http2.HeadersFrame); ok {
				block.Reset()
				now := status
				if h.StreamID == 1 {
					now = "204"
				}
				_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: now})
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: h.StreamID == 1})
				if h.StreamID >= until {
					return
				}
			}
		}
	}
	for name, do := range map[string]func(*http2.Framer, net.Conn){
		"silence":        func(_ *http2.Framer, c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"closes at once": func(*http2.Framer, net.Conn) {},
		"garbage":        func(_ *http2.Framer, c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte("HTTP/1.1 200 OK\r\n"), 100)) },
		"no streams": func(f *http2.Framer, c net.Conn) {
			preface(f, c)
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			_, _ = io.Copy(io.Discard, c)
		},
		"refuses without a word": func(f *http2.Framer, c net.Conn) { answered(f, c, "503", 1000) },
		"cuts in a frame": func(f *http2.Framer, c net.Conn) {
			answered(f, c, "200", 3)
			_, _ = c.Write([]byte{0, 4, 0, 0, 0, 0, 0, 0, 3, 'x'})
		},
		"an absurd length": func(f *http2.Framer, c net.Conn) {
			answered(f, c, "200", 3)
			_, _ = c.Write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 3})
			_, _ = io.Copy(io.Discard, c)
		},
		"more than the window": func(f *http2.Framer, c net.Conn) {
			answered(f, c, "200", 3)
			for f.WriteData(3, false, make([]byte, 16<<10)) == nil {
				continue
			}
		},
		"an absurd Kafka frame": func(f *http2.Framer, c net.Conn) {
			answered(f, c, "200", 3)
			_ = f.WriteData(3, false, []byte{0x7f, 0xff, 0xff, 0xff})
			_, _ = io.Copy(io.Discard, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			pki := testservice.NewPKI(t)
			s := startClientSide(t, pki, fakeFarSide(t, pki, do), freeRange(t, 10), "tunnels: {}\nlimits: {stall: 500ms, handshake: 1s}\n")
			c := dial(t, s.Listeners["kafka"])
			_, _ = c.Write(heartbeat(1))
			if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection was not closed")
			}
			s.Signal(t, 0) // fails if the sidecar has ended
		})
	}
}
