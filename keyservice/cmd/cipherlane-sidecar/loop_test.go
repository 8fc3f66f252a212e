// Peers that connect in a loop.

package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// connectFrom connects from an address of the loopback, sends what no listener understands, and waits for the end.
func connectFrom(t *testing.T, peer, address string) {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(peer)}}).Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = c.Write([]byte{0xff, 0xff, 0xff, 0xff})
	_, _ = io.Copy(io.Discard, c)
}

// linesWith gives the lines of a log that hold all of these.
func linesWith(log string, all ...string) (lines []string) {
	for line := range strings.Lines(log) {
		holds := true
		for _, one := range all {
			holds = holds && strings.Contains(line, one)
		}
		if holds {
			lines = append(lines, line)
		}
	}
	return lines
}

const (
	refusedLine  = `msg="a connection was refused"`
	endedLine    = `msg="a connection has ended"`
	againRefused = `msg="a connection was refused: again and again"`
	againEnded   = `msg="a connection has ended: again and again"`
)

// [CL-SDC-031] A peer is named once for each reason, then counted; another peer, and another reason, are named too. At level debug all are there.
func TestPeersThatConnectInALoop(t *testing.T) {
	pki := testservice.NewPKI(t)
	broker := fakeBroker(t, pki, answering([]byte{0, 0, 0, 0, 0, 0}))
	config := func(level string) string {
		return fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\ntcp: [{name: nowhere, listen: '127.0.0.1:0', upstream: ['127.0.0.1:1']}]\n"+
			"admin_listen: 127.0.0.1:0\nlog: {level: %s}\n%s", broker, freeRange(t, 10), level, tlsPart(t, pki, "client-side"))
	}
	s, debug := testservice.StartSidecar(t, config("info")), testservice.StartSidecar(t, config("debug"))
	served(t, s.Listeners["kafka"])
	const many = 10 // in less than the five seconds of a window, on a busy machine too
	for range many {
		connectFrom(t, "127.0.0.1", s.Listeners["nowhere"])
		connectFrom(t, "127.0.0.1", s.Listeners["kafka"])
		connectFrom(t, "127.0.0.1", debug.Listeners["nowhere"])
	}
	connectFrom(t, "127.0.0.2", s.Listeners["nowhere"])

	if _, figures := get(t, s, "/metrics"); !strings.Contains(figures, fmt.Sprintf("reason=\"upstream\"} %d\n", many+1)) {
		t.Error("not all are counted:", figures)
	}
	log := s.Log.String()
	for name, line := range map[string][]string{
		"refused":      {refusedLine, "level=WARN", "client=127.0.0.1:", "reason=upstream"},
		"another peer": {refusedLine, "level=WARN", "client=127.0.0.2:", "reason=upstream"},
		"ended":        {endedLine, "level=WARN", "client=127.0.0.1:", "reason=error"},
	} {
		if n := len(linesWith(log, line...)); n != 1 {
			t.Errorf("%s: %d lines in %s", name, n, log)
		}
	}
	if all := len(linesWith(debug.Log.String(), refusedLine)); all != many {
		t.Errorf("%d lines at level debug", all)
	}
	eventually(t, "the count of those that were left out", func() bool {
		return len(linesWith(s.Log.String(), againRefused, "peer=127.0.0.1", "reason=upstream", fmt.Sprintf("left_out=%d", many-1))) == 1
	})
	connectFrom(t, "127.0.0.1", s.Listeners["nowhere"])
	connectFrom(t, "127.0.0.1", s.Listeners["nowhere"])
	s.Stop(t)
	if log := s.Log.String(); len(linesWith(log, refusedLine, "client=127.0.0.1:")) != 2 || len(linesWith(log, againRefused, "left_out=1 ")) != 1 ||
		len(linesWith(log, againEnded, fmt.Sprintf("left_out=%d", many-1))) != 1 || len(linesWith(log, "127.0.0.2")) != 1 {
		t.Error("after the end:", log)
	}
}

// [CL-SDC-031] The same where all places are taken.
func TestPeersThatConnectWhereNoPlaceIsLeft(t *testing.T) {
	pki := testservice.NewPKI(t)
	s := startClientSide(t, pki, fakeBroker(t, pki, answering([]byte{0, 0, 0, 0, 0, 0})), freeRange(t, 10), "limits: {connections: 1}\n")
	served(t, s.Listeners["kafka"]) // and holds the place until the test ends
	const many = 10
	for range many {
		connectFrom(t, "127.0.0.1", s.Listeners["kafka"])
	}
	s.Stop(t)
	log := s.Log.String()
	if len(linesWith(log, refusedLine)) != 1 || len(linesWith(log, againRefused, "reason=connections", fmt.Sprintf("left_out=%d", many-1))) != 1 {
		t.Error(log)
	}
}
