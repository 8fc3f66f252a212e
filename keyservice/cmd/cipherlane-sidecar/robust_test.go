// Peers that do not behave, on either side.

package main

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// fakeBroker takes mutual TLS and does with each connection what the test says. It stands for a broker that is hostile or ill.
func fakeBroker(t *testing.T, pki *testservice.PKI, do func(net.Conn)) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", serverTLS(t, pki, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, do)
}

// serve does the same with each connection of a listener, until the test ends. It gives the address.
func serve(t *testing.T, l net.Listener, do func(net.Conn)) string {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				do(c)
			}()
		}
	}()
	return l.Addr().String()
}

// answering answers every request with its correlation id and body.
func answering(body []byte) func(net.Conn) {
	return func(c net.Conn) {
		for {
			frame, err := readFrame(c)
			if err != nil {
				return
			}
			if _, err := c.Write(frameOf(append(frame[4:8:8], body...))); err != nil {
				return
			}
		}
	}
}

func frameOf(p []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)
}

func readFrame(c io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	p := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c, p)
	return p, err
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// heartbeat is a request whose answer no handler looks at.
func heartbeat(correlation int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")).AppendRequest(nil, kmsg.NewPtrHeartbeatRequest(), correlation)
}

func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Fatal("the connection is still used")
	} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // as it comes
		t.Fatal("the connection was not closed")
	}
}

func served(t *testing.T, address string) {
	t.Helper()
	c := dial(t, address)
	for i := range int32(3) {
		if _, err := c.Write(heartbeat(i)); err != nil {
			t.Fatal(err)
		}
		if p, err := readFrame(c); err != nil || int32(binary.BigEndian.Uint32(p)) != i {
			t.Fatal(p, err)
		}
	}
}

// [CL-SDC-013] Frames that no client sends end their connection, and no other.
func TestHostileClients(t *testing.T) {
	pki := testservice.NewPKI(t)
	broker := fakeBroker(t, pki, answering([]byte{0, 0, 0, 0, 0, 0}))
	s := startClientSide(t, pki, broker, freeRange(t, 10), "limits: {stall: 300ms}\n")
	address := s.Listeners["kafka"]
	good := dial(t, address)
	short, long := heartbeat(1), heartbeat(2)
	binary.BigEndian.PutUint32(long, uint32(len(long)+1000))
	for name, bad := range map[string][]byte{
		"negative length":   {0xff, 0xff, 0xff, 0xff},
		"absurd length":     {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1},
		"no room":           {0, 0, 0, 3, 0, 0, 0},
		"half a frame":      short[:len(short)-3],
		"longer than said":  long,
		"unknown API":       frameOf([]byte{0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff}),
		"unknown version":   frameOf([]byte{0, 3, 0x7f, 0xff, 0, 0, 0, 1, 0xff, 0xff}),
		"API of brokers":    frameOf([]byte{0, 4, 0, 0, 0, 0, 0, 1, 0xff, 0xff}),
		"a client id cut":   frameOf([]byte{0, 12, 0, 0, 0, 0, 0, 1, 0x7f, 0xff}),
		"a TLS hello":       {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"HTTP":              []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"Produce, no acks":  frameOf([]byte{0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}),
		"a cut tagged part": frameOf([]byte{0, 12, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 5, 1}),
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, address)
			if _, err := c.Write(bad); err != nil {
				t.Fatal(err)
			}
			closed(t, c)
		})
	}
	if _, err := good.Write(heartbeat(9)); err != nil {
		t.Fatal(err)
	}
	if _, err := readFrame(good); err != nil {
		t.Fatal("another connection was ended:", err)
	}
}

// [CL-SDC-013] What no broker sends is not delivered.
func TestHostileBroker(t *testing.T) {
	pki := testservice.NewPKI(t)
	for name, answer := range map[string]func(id []byte) []byte{
		"another correlation id": func([]byte) []byte { return frameOf([]byte{9, 9, 9, 9, 0, 0}) },
		"an absurd length":       func([]byte) []byte { return []byte{0x7f, 0xff, 0xff, 0xff} },
		"half a frame":           func(id []byte) []byte { return append([]byte{0, 0, 0, 100}, id...) },
		"two answers":            func(id []byte) []byte { p := frameOf(append(id[:4:4], 0, 0)); return append(p, p...) },
	} {
		t.Run(name, func(t *testing.T) {
			broker := fakeBroker(t, pki, func(c net.Conn) {
				frame, err := readFrame(c)
				if err != nil {
					return
				}
				_, _ = c.Write(answer(frame[4:8]))
				_, _ = io.Copy(io.Discard, c)
			})
			s := startClientSide(t, pki, broker, freeRange(t, 10), "limits: {stall: 300ms}\n")
			c := dial(t, s.Listeners["kafka"])
			if _, err := c.Write(heartbeat(1)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the connection was not closed")
			}
			s.Signal(t, 0) // fails if the sidecar has ended
		})
	}
}

func rss(t *testing.T, pid int) (mebibytes int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// [CL-SDC-030] 2,000 idle and 512 busy connections take bounded memory, and the idle ones still work.
func TestManyConnections(t *testing.T) {
	pki := testservice.NewPKI(t)
	broker := fakeBroker(t, pki, answering(make([]byte, 32<<10)))
	s := startClientSide(t, pki, broker, freeRange(t, 10), "")
	address := s.Listeners["kafka"]
	idle := make([]net.Conn, 2000)
	for i := range idle {
		idle[i] = dial(t, address)
		_ = idle[i].SetDeadline(time.Time{})
	}
	exchange := func(c net.Conn, n int) error {
		for i := range int32(n) {
			if _, err := c.Write(heartbeat(i)); err != nil {
				return err
			}
			if _, err := readFrame(c); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range idle {
		if err := exchange(c, 1); err != nil {
			t.Fatal(err)
		}
	}
	quiet := rss(t, s.PID())
	var all sync.WaitGroup
	for range 512 {
		c := dial(t, address)
		_ = c.SetDeadline(time.Time{})
		all.Go(func() {
			if err := exchange(c, 20); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	busy := rss(t, s.PID())
	t.Logf("memory: %d MiB with 2,000 idle connections, %d MiB after 512 busy ones", quiet, busy)
	if quiet > 256 || busy > 512 {
		t.Errorf("more than 256 and 512 MiB")
	}
	if err := exchange(idle[1000], 1); err != nil {
		t.Error("an idle connection:", err)
	}
}

// [CL-SDC-030] Clients that send requests and do not read hold the broker back: memory stays bounded, others are served.
func TestSlowReaders(t *testing.T) {
	pki := testservice.NewPKI(t)
	broker := fakeBroker(t, pki, answering(make([]byte, 1<<20)))
	s := startClientSide(t, pki, broker, freeRange(t, 10), "limits: {stall: 2s, in_flight: 100}\n")
	before := rss(t, s.PID())
	for range 64 {
		c := dial(t, s.Listeners["kafka"])
		for i := range int32(50) {
			if _, err := c.Write(heartbeat(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(time.Second)
	held := rss(t, s.PID())
	served(t, s.Listeners["kafka"])
	t.Logf("memory: %d MiB before, %d MiB with 64 slow readers of 50 MiB each", before, held)
	if held > before+200 {
		t.Error("slow readers cost more than 200 MiB")
	}
}

// [CL-SDC-020] [CL-SDC-021] Connections end before their certificate does; then nothing is taken, and /readyz says why.
func TestCertificateEnds(t *testing.T) {
	pki := testservice.NewPKI(t)
	broker := fakeBroker(t, pki, answering([]byte{0, 0, 0, 0, 0, 0}))
	short := pki.Issue(t, "short", "spiffe://example.org/short", 4*time.Second)
	config := fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\ntls: {ca: %s, certificate: %s, key: %s}\n",
		broker, freeRange(t, 10), pki.CA, short.Certificate, short.Key)
	s := testservice.StartSidecar(t, config)
	c := dial(t, s.Listeners["kafka"])
	if _, err := c.Write(heartbeat(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := readFrame(c); err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	ended := time.Now()
	time.Sleep(time.Until(ended.Add(1500 * time.Millisecond)))
	closed(t, dial(t, s.Listeners["kafka"]))
	if status, text := get(t, s, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, "certificate has ended") {
		t.Fatal(status, text)
	}
	pki.Issue(t, "short", "spiffe://example.org/short", time.Hour) // renewed by another hand, in the same files
	time.Sleep(3 * time.Second)
	served(t, s.Listeners["kafka"])
	if status, text := get(t, s, "/metrics"); status != http.StatusOK || !strings.Contains(text, `reason="certificate"`) {
		t.Fatal(status, text)
	}
}

func get(t *testing.T, s *testservice.Sidecar, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + s.Listeners["admin"] + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(data)
}

// A peer that stops (SIGSTOP) holds nothing up for ever: handshakes with it end in time, and when it goes on so does all else.
func TestStoppedPeer(t *testing.T) {
	pki := testservice.NewPKI(t)
	plaintext := echo(t, "127.0.0.1:0")
	far := testservice.StartSidecar(t, fmt.Sprintf("side: broker\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		plaintext, tlsPart(t, pki, "broker-side")))
	near := testservice.StartSidecar(t, fmt.Sprintf("side: client\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\nlimits: {handshake: 1s, stall: 5s}\n%s",
		far.Listeners["echo"], tlsPart(t, pki, "client-side")))
	c := dial(t, near.Listeners["echo"])
	talk(t, c)
	far.Signal(t, syscall.SIGSTOP)
	closed(t, dial(t, near.Listeners["echo"]))
	far.Signal(t, syscall.SIGCONT)
	talk(t, c)
	talk(t, dial(t, near.Listeners["echo"]))
}

func talk(t *testing.T, c net.Conn) {
	t.Helper()
	p := make([]byte, 5)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, p); err != nil || string(p) != "hello" {
		t.Fatal(p, err)
	}
}

// [CL-SDC-003] A peer whose certificate is of another CA, or not of those that tls.peers names, is refused.
func TestWrongPeers(t *testing.T) {
	pki, other := testservice.NewPKI(t), testservice.NewPKI(t)
	plaintext := echo(t, "127.0.0.1:0")
	far := testservice.StartSidecar(t, fmt.Sprintf("side: broker\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		plaintext, tlsPart(t, pki, "broker-side")))
	for name, part := range map[string]struct {
		tls  string
		good bool
	}{
		"right":        {strings.Replace(tlsPart(t, pki, "right"), "tls: {", "tls: {peers: ['spiffe://example.org/broker-*'], ", 1), true},
		"another CA":   {tlsPart(t, other, "foreign"), false},
		"another name": {strings.Replace(tlsPart(t, pki, "picky"), "tls: {", "tls: {peers: ['spiffe://example.org/other'], ", 1), false},
		"another host": {strings.Replace(tlsPart(t, pki, "named"), "tls: {", "tls: {server_name: elsewhere.example.org, ", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			near := testservice.StartSidecar(t, fmt.Sprintf("side: client\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
				far.Listeners["echo"], part.tls))
			c := dial(t, near.Listeners["echo"])
			if part.good {
				talk(t, c)
				return
			}
			_, _ = c.Write([]byte("hello"))
			closed(t, c)
		})
	}
	plain := dial(t, far.Listeners["echo"])
	_, _ = plain.Write([]byte("hello, in plaintext"))
	if p, _ := io.ReadAll(plain); strings.Contains(string(p), "hello") {
		t.Fatal("plaintext was taken where TLS is due")
	}
}
