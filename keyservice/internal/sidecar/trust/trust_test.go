package trust_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust/trusttest"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// capture keeps what a connection reads.
type capture struct {
	net.Conn
	mu  sync.Mutex
	got bytes.Buffer
}

func (c *capture) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got.Write(p[:n])
	return n, err
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func connect(t *testing.T, l *net.TCPListener, from *trust.Source) (*wire.Secure, error) {
	t.Helper()
	c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(l.Addr().(*net.TCPAddr).AddrPort())) //nolint:forcetypeassert // of a TCP listener
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := from.Client("localhost")
	if err != nil {
		return nil, err
	}
	s := wire.NewClient(c, cfg, time.Second)
	t.Cleanup(func() { s.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = s.Handshake(ctx)
	return s, err
}

// Sessions are resumed; one that was begun with a certificate is not with the next.
func TestResumption(t *testing.T) {
	pki := testservice.NewPKI(t)
	client, server := trusttest.Source(t, pki, "client", time.Hour, ""), trusttest.Source(t, pki, "server", time.Hour, "")
	l := listen(t)
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			s := wire.NewServer(c, server.Server(), time.Second)
			if s.Handshake(context.Background()) == nil {
				_ = s.WriteAll(net.Buffers{[]byte("x")})
			}
		}
	}()
	resumed := func(from *trust.Source) bool {
		s, err := connect(t, l, from)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(make([]byte, 1)); err != nil { // after the tickets
			t.Fatal(err)
		}
		return s.ConnectionState().DidResume
	}
	if resumed(client) || !resumed(client) {
		t.Fatal("the second connection was not resumed, or the first was")
	}
	next := trusttest.Source(t, pki, "client", time.Hour, "")
	if resumed(next) {
		t.Fatal("a session of another certificate was resumed")
	}
}

// Records are as large as TLS allows from the first byte, and many go out with one write.
func TestLargeRecords(t *testing.T) {
	pki := testservice.NewPKI(t)
	client, server := trusttest.Source(t, pki, "client", time.Hour, ""), trusttest.Source(t, pki, "server", time.Hour, "")
	l := listen(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 64<<10/16)
	seen, done := &capture{}, make(chan error, 1)
	go func() {
		c, err := l.AcceptTCP()
		if err != nil {
			done <- err
			return
		}
		seen.Conn = c
		s := tls.Server(seen, server.Server())
		p := make([]byte, len(sent))
		_, err = io.ReadFull(s, p)
		if err == nil && !bytes.Equal(p, sent) {
			err = errors.New("other bytes came")
		}
		done <- err
	}()
	s, err := connect(t, l, client)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteAll(net.Buffers{sent}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	full := 0
	for rest := seen.got.Bytes(); len(rest) > 5; {
		size := int(binary.BigEndian.Uint16(rest[3:]))
		if size > 16<<10 {
			full++
		}
		rest = rest[min(5+size, len(rest)):]
	}
	if full != 4 {
		t.Errorf("%d full records, not 4, for 64 KiB", full)
	}
}

// [CL-SDC-020]
func TestEnded(t *testing.T) {
	pki := testservice.NewPKI(t)
	ended := trusttest.Source(t, pki, "ended", -time.Minute, "")
	if _, _, err := ended.Client("localhost"); !errors.Is(err, trust.ErrEnded) {
		t.Error(err)
	}
	if _, err := ended.Server().GetConfigForClient(nil); !errors.Is(err, trust.ErrEnded) {
		t.Error(err)
	}
	if _, _, err := trust.New(nil, "").Client("localhost"); !errors.Is(err, trust.ErrEnded) {
		t.Error(err)
	}
}
