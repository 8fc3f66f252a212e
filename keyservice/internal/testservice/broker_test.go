package testservice

import (
	"net"
	"syscall"
	"testing"
	"time"
)

func TestClusterNodesComeAndGo(t *testing.T) {
	cluster := RunBroker(t, "--cluster", "3")
	if len(cluster.Nodes) != 3 {
		t.Fatalf("%d nodes", len(cluster.Nodes))
	}
	second := cluster.Nodes[1].Bootstrap
	if !answers(second) {
		t.Fatal("node 2 does not answer")
	}
	cluster.Signal(t, 2, syscall.SIGKILL)
	eventually(t, func() bool { return !answers(second) })
	cluster.Restart(t, 2)
	eventually(t, func() bool { return answers(second) })
}

func answers(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("not within a minute")
		}
	}
}
