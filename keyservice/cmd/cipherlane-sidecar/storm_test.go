// Many clients that connect at the same time.

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// crowd notes how many are in the middle of a handshake at once.
type crowd struct {
	mu        sync.Mutex
	now, most int
}

// stay is called by the sidecar's peer in the middle of a handshake, and takes its time.
func (c *crowd) stay() {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	c.mu.Lock()
	c.now--
	c.mu.Unlock()
}

// storm has 50 clients connect at once, and each served.
func storm(t *testing.T, connect func() (net.Conn, error)) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := exchanged(connect); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// exchanged connects to an echo and has one.
func exchanged(connect func() (net.Conn, error)) error {
	c, err := connect()
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	p := make([]byte, 5)
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, p); err != nil || string(p) != "hello" {
		return fmt.Errorf("%q: %w", p, err)
	}
	return nil
}

const twoAtOnce = "limits: {handshakes: 2, handshake: 6s}\n"

// With limits.handshakes 2 there are never more than two handshakes at a time, the others wait, and all are served. Peers that say nothing keep
// their places no longer than limits.handshake.
func TestHandshakesWithClientsAtOnce(t *testing.T) {
	pki := testservice.NewPKI(t)
	s := testservice.StartSidecar(t, fmt.Sprintf("side: broker\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s%s",
		echo(t, "127.0.0.1:0"), twoAtOnce, tlsPart(t, pki, "broker-side")))
	var held crowd
	cfg := certified(t, pki, "client")
	cfg.VerifyConnection = func(tls.ConnectionState) error { // before the sidecar has the client's certificate
		held.stay()
		return nil
	}
	connect := func() (net.Conn, error) { return tls.Dial("tcp", s.Listeners["echo"], cfg) }
	storm(t, connect)
	if held.most != 2 {
		t.Errorf("%d handshakes at once", held.most)
	}
	began := time.Now()
	for range 2 {
		dial(t, s.Listeners["echo"])
	}
	time.Sleep(3 * time.Second) // less than limits.handshake, which holds for who waits too
	if err := exchanged(connect); err != nil {
		t.Error("behind two that say nothing:", err)
	}
	if took := time.Since(began); took < 6*time.Second {
		t.Errorf("a third handshake after %s", took)
	}
}

// The same where the sidecar is the client of each handshake.
func TestHandshakesWithAnUpstreamAtOnce(t *testing.T) {
	pki := testservice.NewPKI(t)
	var held crowd
	cfg := serverTLS(t, pki, "upstream")
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { // the sidecar has no answer yet
		held.stay()
		return nil, nil //nolint:nilnil // as it is
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	upstream := serve(t, l, func(c net.Conn) { _, _ = io.Copy(c, c) })
	s := testservice.StartSidecar(t, fmt.Sprintf("side: client\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s%s",
		upstream, twoAtOnce, tlsPart(t, pki, "client-side")))
	storm(t, func() (net.Conn, error) { return net.Dial("tcp", s.Listeners["echo"]) })
	if held.most != 2 {
		t.Errorf("%d handshakes at once", held.most)
	}
}
