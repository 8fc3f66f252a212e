// HTTP/2 as an attacker speaks it, frame by frame.

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// frames is a connection of the producer.
type frames struct {
	*http2.Framer
	conn    net.Conn
	headers bytes.Buffer
	encoder *hpack.Encoder
}

func (k *keyService) speakHTTP2(t *testing.T) *frames {
	t.Helper()
	cfg := k.tlsConfig(t, "producer")
	cfg.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(k.URL, "https://"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(40 * time.Second)); err != nil {
		t.Fatal(err)
	}
	f := &frames{Framer: http2.NewFramer(conn, conn), conn: conn}
	f.encoder = hpack.NewEncoder(&f.headers)
	send(t, conn, http2.ClientPreface)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// block encodes the headers of a call and some more.
func (f *frames) block(more ...string) []byte {
	f.headers.Reset()
	fields := append([]string{
		":method", "POST", ":scheme", "https", ":authority", "localhost", ":path", "/v1/encryption-key", "content-type", "application/json",
	}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(f.headers.Bytes())
}

// open begins a call whose body is to follow.
func (f *frames) open(stream uint32, block []byte) error {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true})
}

// drain reads until the server closes the connection, and gives what it said: names of frames, and statuses.
func (f *frames) drain() string {
	var said strings.Builder
	decoder := hpack.NewDecoder(4096, func(h hpack.HeaderField) {
		if h.Name == ":status" {
			said.WriteString(" status=" + h.Value)
		}
	})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				said.WriteString(" NOT CLOSED")
			}
			return said.String()
		}
		switch one := frame.(type) {
		case *http2.GoAwayFrame:
			said.WriteString(" goaway=" + one.ErrCode.String())
		case *http2.RSTStreamFrame:
			said.WriteString(" reset=" + one.ErrCode.String())
		case *http2.HeadersFrame:
			_, _ = decoder.Write(one.HeaderBlockFragment())
		}
	}
}

// attack does something forbidden; writing may fail, as the server may hang up at any time.
type attack func(f *frames)

// A block of headers that has no end, and one that unpacks to a thousand times its size.
func endlessContinuation(f *frames) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.block()})
	part := bytes.Repeat([]byte{0x40, 1, 'a', 1, 'b'}, 1000)
	for f.WriteContinuation(1, false, part) == nil {
		continue
	}
}

func headerBomb(f *frames) {
	block := f.block("x-bomb", strings.Repeat("x", 3000))
	for range 5000 { // one byte each: the entry that the encoder has just made
		block = append(block, 0x80|62)
	}
	_ = f.open(1, block)
	_ = f.WriteData(1, true, []byte(`{"topic":"claims"}`))
}

func wrongLength(f *frames) {
	_ = f.open(1, f.block("content-length", "18"))
	_ = f.WriteData(1, true, []byte(`{"topic":"claims"}{"topic":"t-other"}`))
}

func pings(f *frames) {
	for i := range 20_000 {
		if f.WritePing(false, [8]byte{byte(i)}) != nil {
			return
		}
	}
}

func settings(f *frames) {
	for i := range uint32(20_000) {
		if f.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: i % 4096}) != nil {
			return
		}
	}
}

func raw(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) attack {
	return func(f *frames) { _ = f.WriteRawFrame(kind, flags, stream, payload) }
}

func callWith(more ...string) attack {
	return func(f *frames) {
		_ = f.open(1, f.block(more...))
		_ = f.WriteData(1, true, []byte(`{"topic":"claims"}`))
	}
}

// [CL-API-015] None of these gets a key or keeps others from theirs; the connection is closed, or the stream refused.
func TestHostileHTTP2(t *testing.T) {
	k := start(t)
	attacks := map[string]struct {
		attack attack
		want   string // in what the server says; empty when it need not say anything
	}{
		"endless continuation":     {endlessContinuation, ""},
		"header bomb":              {headerBomb, ""},
		"body longer than it says": {wrongLength, ""},
		"pings":                    {pings, ""},
		"settings":                 {settings, ""},
		"frame too large":          {raw(http2.FrameData, 0, 1, make([]byte, 1<<20+1)), "goaway"},
		"data on an idle stream":   {raw(http2.FrameData, 0, 5, []byte("x")), "goaway"},
		"even stream":              {raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 2, []byte{0x82}), "goaway"},
		"broken compression":       {raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff}), "goaway"},
		"padding beyond its frame": {raw(http2.FrameData, http2.FlagDataPadded, 1, []byte{200, 1}), "goaway"},
		"window of nothing":        {raw(http2.FrameWindowUpdate, 0, 0, []byte{0, 0, 0, 0}), "goaway"},
		"window overflow":          {raw(http2.FrameWindowUpdate, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff}), "goaway"},
		"push promise":             {raw(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, []byte{0, 0, 0, 2}), "goaway"},
		"upper case header":        {callWith("X-Upper", "1"), "=PROTOCOL_ERROR"},
		"connection header":        {callWith("connection", "keep-alive"), "status=400"},
		"line feed in a header":    {callWith("x-a", "b\nhost: c"), "=PROTOCOL_ERROR"},
		"pseudo header too late":   {callWith(":path", "/v1/decryption-keys"), "=PROTOCOL_ERROR"},
		"absurd length":            {callWith("content-length", "9223372036854775807"), ""},
		"length that is no number": {callWith("content-length", "-1"), ""},
	}
	t.Run("attacks", func(t *testing.T) { // at once: each waits for what the server says
		for name, c := range attacks {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				k.underAttack(t, c.attack, c.want)
			})
		}
	})
	k.quiet(t)
}

func (k *keyService) underAttack(t *testing.T, do attack, want string) {
	t.Helper()
	f := k.speakHTTP2(t)
	said := make(chan string, 1)
	go func() { said <- f.drain() }()
	do(f)
	_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
	time.AfterFunc(3*time.Second, func() { _ = f.conn.Close() })
	if got := <-said; strings.Contains(got, "status=200") || !strings.Contains(got, want) {
		t.Errorf("the server said%s; want %q", got, want)
	}
	k.encryptionKey(t, "claims")
}

// quiet sees that nothing of what was begun is still held.
func (k *keyService) quiet(t *testing.T) {
	t.Helper()
	testvault.Eventually(t, "no call is held", func() bool { return strings.Contains(k.get(t, "/metrics"), "cipherlane_keyservice_in_flight 0\n") })
}

// Streams that are opened and reset at once (CVE-2023-44487) do not pile up, and others are served meanwhile.
func TestRapidReset(t *testing.T) {
	k := start(t)
	k.encryptionKey(t, "claims")
	before := k.memory(t)
	f := k.speakHTTP2(t)
	go func() { _ = f.drain() }()
	resets, served := 0, 0
	for ; resets < 10_000; resets++ {
		stream := uint32(2*resets + 1)
		if f.open(stream, f.block()) != nil || f.WriteRSTStream(stream, http2.ErrCodeCancel) != nil {
			break
		}
		if resets%5_000 == 2_500 {
			k.encryptionKey(t, "claims")
			served++
		}
	}
	_ = f.conn.Close()
	k.quiet(t)
	k.encryptionKey(t, "claims")
	grown := k.memory(t) - before
	t.Logf("%d streams reset, %d calls served meanwhile, %d MiB more", resets, served, grown>>20)
	if grown > 192<<20 { // the race detector's part of it is most
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}

// A caller that never reads its answers loses its connection.
func TestWindowNeverOpened(t *testing.T) {
	k := startWith(t, "timeouts: {answer: 2s}\n")
	f := k.speakHTTP2(t)
	if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	for stream := range uint32(50) {
		if f.open(2*stream+1, f.block()) != nil || f.WriteData(2*stream+1, true, []byte(`{"topic":"claims"}`)) != nil {
			break
		}
	}
	k.quiet(t)
	k.encryptionKey(t, "claims")
}

// memory gives what the child holds that is no file, in bytes.
func (k *keyService) memory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", k.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "RssAnon:"); found {
			kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}
