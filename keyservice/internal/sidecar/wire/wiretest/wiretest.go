// Package wiretest has what tests of connections share.
package wiretest

import (
	"net"
	"testing"
)

// Connected gives both ends of a TCP connection, which are closed at the end of the test.
func Connected(t *testing.T) (from, to *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if from, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)); err != nil { //nolint:forcetypeassert // of a TCP listener
		t.Fatal(err)
	}
	if to, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	return from, to
}
