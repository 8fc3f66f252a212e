// Brokers that leave the cluster.

package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// forgotten kills a broker: its listener goes when no Metadata has had it for kafka.brokers.forget, and comes back with it.
func forgotten(t *testing.T, pki *testservice.PKI, p pair, brokers *testservice.Broker) {
	t.Helper()
	base := freeRange(t, 10)
	near := testservice.StartSidecar(t, fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d, forget: 1s}}\nadmin_listen: 127.0.0.1:0\n%s",
		p.broker.Listeners["kafka"], base, tlsPart(t, pki, "forgetful")))
	client := kafkaClient(t, near.Listeners["kafka"])
	state := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(state, near.Log)
		}
	})
	has := func(n int) func() bool {
		return func() bool {
			cluster, err := kmsg.NewPtrMetadataRequest().RequestWith(within(t, 5*time.Second), client) // by which the sidecar learns
			if err != nil {
				return false
			}
			c, refused := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", base+3))
			if refused == nil {
				_ = c.Close()
			}
			_, figures := get(t, near, "/metrics")
			state = fmt.Sprintf("%d brokers in Metadata, the listener of the third: %v", len(cluster.Brokers), refused)
			return len(cluster.Brokers) == n && strings.Contains(figures, fmt.Sprintf("cipherlane_sidecar_brokers %d\n", n)) && (refused == nil) == (n == 3)
		}
	}
	eventually(t, "three brokers", has(3))
	brokers.Signal(t, 3, syscall.SIGKILL)
	eventually(t, "the end of the third broker's listener", has(2))
	if log := near.Log.String(); !strings.Contains(log, "a broker is gone") {
		t.Error(log)
	}
	brokers.Restart(t, 3)
	eventually(t, "its return", has(3))
}
