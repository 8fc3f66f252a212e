// Tunnels: what both sides agree on, and what holds for the connections that go through them.

package main

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// tunnelled is a pair with tunnels between them.
func tunnelled(t *testing.T, pki *testservice.PKI, brokers, near, far string) pair {
	t.Helper()
	p := startTwo(t, pki, brokers, near, far)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.client.Log, p.broker.Log)
		}
	})
	return p
}

// plainBroker stands for a broker in plaintext.
func plainBroker(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, do)
}

// figure gives the value of a metric; 0 if it is not there.
func figure(t *testing.T, s *testservice.Sidecar, name string) int {
	t.Helper()
	_, all := get(t, s, "/metrics")
	for line := range strings.Lines(all) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	return 0
}

// socket is one of a process, as the kernel lists it.
type socket struct {
	port, state string
}

// accepted counts the connections that a sidecar has taken, by the kernel's own list; those to admin_listen are not counted.
func accepted(t *testing.T, s *testservice.Sidecar) (n int) {
	t.Helper()
	const listening, established = "0A", "01"
	all, ports := sockets(t, s.PID()), map[string]bool{}
	_, admin, _ := net.SplitHostPort(s.Listeners["admin"])
	for _, one := range all {
		if number, _ := strconv.ParseInt(one.port, 16, 32); one.state == listening && strconv.FormatInt(number, 10) != admin {
			ports[one.port] = true
		}
	}
	for _, one := range all {
		if one.state == established && ports[one.port] {
			n++
		}
	}
	return n
}

func sockets(t *testing.T, pid int) (all []socket) {
	t.Helper()
	own, folder := map[string]bool{}, fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, _ := os.Readlink(filepath.Join(folder, entry.Name()))
		own[target] = true
	}
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		const local, state, inode = 1, 3, 9
		fields := strings.Fields(line)
		if name := "socket:[" + fields[inode] + "]"; own[name] {
			delete(own, name) // the list may have a socket twice, if others come and go while it is read
			_, port, _ := strings.Cut(fields[local], ":")
			all = append(all, socket{port, fields[state]})
		}
	}
	return all
}

// exchange makes n requests on a connection.
func exchange(c net.Conn, n int) error {
	for i := range int32(n) {
		if _, err := c.Write(heartbeat(i)); err != nil {
			return err
		}
		if p, err := readFrame(c); err != nil || int32(binary.BigEndian.Uint32(p)) != i {
			return fmt.Errorf("%v, %w", p, err)
		}
	}
	return nil
}

// [CL-SDC-040] [CL-SDC-041] 150 connections are over two TLS connections, and what is beyond the tunnels' room has TLS for itself; nobody is refused.
func TestTunnelsAreBounded(t *testing.T) {
	p := tunnelled(t, testservice.NewPKI(t), plainBroker(t, answering(make([]byte, 100))), "tunnels: {connections: 2, streams: 70}\n", "tunnels: {}\n")
	conns := make([]net.Conn, 150)
	for i := range conns {
		conns[i] = dial(t, p.bootstrap)
		if err := exchange(conns[i], 2); err != nil {
			t.Fatal(i, err)
		}
	}
	if n := accepted(t, p.broker); n != 2+10 {
		t.Errorf("%d TLS connections", n)
	}
	for s, want := range map[*testservice.Sidecar]int{p.client: 10, p.broker: 0} {
		got := []int{
			figure(t, s, "cipherlane_sidecar_tunnels"), figure(t, s, "cipherlane_sidecar_tunnel_streams"),
			figure(t, s, `cipherlane_sidecar_tunnel_own_total{reason="full"}`),
		}
		if !slices.Equal(got, []int{2, 140, want}) || figure(t, s, `cipherlane_sidecar_tunnel_bytes_total{direction="in"}`) < 2*140*len(heartbeat(1)) {
			t.Error(got)
		}
	}
	for _, c := range conns {
		if err := exchange(c, 1); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	eventually(t, "all streams to end", func() bool {
		return figure(t, p.client, "cipherlane_sidecar_tunnel_streams")+figure(t, p.broker, "cipherlane_sidecar_tunnel_streams") == 0
	})
	if _, figures := get(t, p.broker, "/metrics"); strings.Contains(figures, `reason="error"`) {
		t.Error("connections ended by errors:", figures)
	}
}

// [CL-SDC-042] A peer without tunnels is served as ever, or refused with a reason that says so, as the configuration wants it.
func TestTunnelsUnsupported(t *testing.T) {
	pki := testservice.NewPKI(t)
	old := fakeBroker(t, pki, answering([]byte{0, 0, 0, 0, 0, 0}))
	s := startClientSide(t, pki, old, freeRange(t, 10), "tunnels: {}\n")
	for range 3 {
		served(t, s.Listeners["kafka"])
	}
	if n := figure(t, s, `cipherlane_sidecar_tunnel_own_total{reason="unsupported"}`); n != 3 {
		t.Error(n, "connections for themselves")
	}
	strict := startClientSide(t, pki, old, freeRange(t, 10), "tunnels: {unsupported: refuse}\n")
	closed(t, dial(t, strict.Listeners["kafka"]))
	eventually(t, "the reason in the log", func() bool { return strings.Contains(strict.Log.String(), "the peer takes no tunnels") })
}

// [CL-SDC-042] Clients with TLS and no tunnels are served by a listener that takes tunnels, whatever protocols they offer; only one that offers the
// tunnels' own, and speaks something else, is not.
func TestTunnelsBesidePlainClients(t *testing.T) {
	pki := testservice.NewPKI(t)
	far := tunnelled(t, pki, plainBroker(t, answering([]byte{0, 0, 0, 0, 0, 0})), "", "tunnels: {}\n").broker
	peer := peerTLS(t, pki)
	for name, offered := range map[string][]string{"none": nil, "others": {"h2", "kafka"}} {
		t.Run(name, func(t *testing.T) {
			c := dialTLS(t, peer, far.Listeners["kafka"], offered...)
			if err := exchange(c, 3); err != nil || c.ConnectionState().NegotiatedProtocol != "" {
				t.Error(err, c.ConnectionState().NegotiatedProtocol)
			}
		})
	}
	c := dialTLS(t, peer, far.Listeners["kafka"], "kafka", tunnelProtocol)
	if _, err := c.Write(heartbeat(1)); err != nil {
		t.Fatal(err)
	}
	if p, err := io.ReadAll(c); len(p) > 0 {
		t.Error("Kafka is answered within a tunnel:", p, err)
	}
}

const tunnelProtocol = "cipherlane-tunnel/1"

// peerTLS is for somebody with a certificate.
func peerTLS(t *testing.T, pki *testservice.PKI) *tls.Config {
	t.Helper()
	cfg := certified(t, pki, "peer")
	cfg.ServerName = "127.0.0.1"
	return cfg
}

// serverTLS is for a server that takes mutual TLS.
func serverTLS(t *testing.T, pki *testservice.PKI, name string) *tls.Config {
	t.Helper()
	cfg := certified(t, pki, name)
	cfg.ClientCAs, cfg.ClientAuth = cfg.RootCAs, tls.RequireAndVerifyClientCert
	return cfg
}

func certified(t *testing.T, pki *testservice.PKI, name string) *tls.Config {
	t.Helper()
	files := pki.Issue(t, name, "spiffe://example.org/"+name, time.Hour)
	cfg, err := operator.TLSConfig(pki.CA, files.Certificate, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func dialTLS(t *testing.T, cfg *tls.Config, address string, protocols ...string) *tls.Conn {
	t.Helper()
	cfg = cfg.Clone()
	cfg.NextProtos = protocols
	c := tls.Client(dial(t, address), cfg)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}

// [CL-SDC-043] A connection that grows is drained, with every answer delivered, and the next one of its listener has TLS for itself, however much it
// carries; a connection that carries as much in a longer time stays.
func TestTunnelsAreLeftByWhatGrows(t *testing.T) {
	p := tunnelled(t, testservice.NewPKI(t), plainBroker(t, answering(make([]byte, 10_000))), "tunnels: {own: {bytes: 100000, within: 1s}}\n", "tunnels: {}\n")
	slow := dial(t, p.bootstrap)
	ended := make(chan error, 1)
	go func() {
		for range 24 {
			if err := exchange(slow, 1); err != nil {
				ended <- err
				return
			}
			time.Sleep(150 * time.Millisecond)
		}
		ended <- nil
	}()
	grown := dial(t, p.bootstrap)
	answers := 0
	for ; answers < 1000 && exchange(grown, 1) == nil; answers++ {
		continue
	}
	if answers < 9 || answers > 100 {
		t.Error("it ended after", answers, "answers")
	}
	again := dial(t, p.bootstrap)
	if err := exchange(again, 100); err != nil {
		t.Error("its next connection:", err)
	}
	if own, streams := figure(t, p.client, `cipherlane_sidecar_tunnel_own_total{reason="grown"}`), figure(t, p.client, "cipherlane_sidecar_tunnel_streams_opened_total"); own != 1 || streams != 2 {
		t.Error(own, streams)
	}
	if err := <-ended; err != nil {
		t.Error("the one that is slow:", err)
	}
	if _, figures := get(t, p.client, "/metrics"); !strings.Contains(figures, `reason="grown"`) || strings.Contains(figures, `reason="error"`) {
		t.Error(figures)
	}
}

// [CL-SDC-041] [CL-SDC-030] A stream counts as a connection: with limits.connections reached it is refused, and served when there is room.
func TestTunnelsWithinLimits(t *testing.T) {
	p := tunnelled(t, testservice.NewPKI(t), plainBroker(t, answering(make([]byte, 10))), "tunnels: {connections: 1}\n", "tunnels: {}\nlimits: {connections: 4}\n")
	open := make([]net.Conn, 3) // and the tunnel itself
	for i := range open {
		open[i] = dial(t, p.bootstrap)
		if err := exchange(open[i], 1); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, p.bootstrap)
	_, _ = c.Write(heartbeat(1))
	closed(t, c)
	eventually(t, "the reason in the log", func() bool { return strings.Contains(p.client.Log.String(), `refused the connection: \"connections\"`) })
	if n := figure(t, p.broker, `cipherlane_sidecar_connections_refused_total{listener="kafka",reason="connections"}`); n != 1 {
		t.Error(n, "were refused")
	}
	open[0].Close()
	eventually(t, "room", func() bool {
		c, err := net.Dial("tcp", p.bootstrap)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		return exchange(c, 1) == nil
	})
}
