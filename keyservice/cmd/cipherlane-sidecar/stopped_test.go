// Peers that stop under load and go on later: to those who write to them it looks like a network that takes nothing any more.

package main

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// [CL-SDC-030] The sidecar before the brokers stops (SIGSTOP), then the broker that leads: whoever writes to it ends the connection after
// limits.stall, and keeps little of what is under way. When the peer goes on (SIGCONT), what it had already taken is done beside what the producer sent again:
// nothing is lost, and nothing repeated.
func peersStop(t *testing.T, pki *testservice.PKI, brokers *testservice.Broker) {
	t.Helper()
	const (
		topic       = "stopped"
		batch       = 16 << 20
		outstanding = 6 * batch // at all times, and five under way: more than the buffers of the kernel take
		most        = 32        // MiB that a sidecar may need for it
	)
	direct := brokers.Nodes[0].Bootstrap
	leader := created(t, direct, topic)
	p := tunnelled(t, pki, brokers.Bootstrap, shortStall, shortStall)
	served(t, p.bootstrap)
	idle := []int{rss(t, p.client.PID()), rss(t, p.broker.PID())}
	stop := loadWith(t, p.bootstrap, topic, 0, []kgo.RecordHeader{{Key: "padding", Value: noise(256 << 10)}}, kgo.MaxBufferedBytes(outstanding),
		kgo.ProducerBatchMaxBytes(batch), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for _, peer := range []struct {
		name   string
		signal func(syscall.Signal)
		writer *testservice.Sidecar
		idle   int // MiB of the writer
	}{
		{"the sidecar before the brokers", func(s syscall.Signal) { p.broker.Signal(t, s) }, p.client, idle[0]},
		{"the broker", func(s syscall.Signal) { brokers.Signal(t, leader, s) }, p.broker, idle[1]},
	} {
		before := stored(t, direct, topic)
		eventually(t, "records", func() bool { return stored(t, direct, topic) >= before+100 })
		held := stopped(t, peer.name, peer.signal, peer.writer)
		t.Logf("who writes to %s: %d MiB before the load, %d MiB while it is stopped", peer.name, peer.idle, held)
		if held > peer.idle+most {
			t.Errorf("who writes to %s holds %d MiB more", peer.name, held-peer.idle)
		}
	}
	acknowledged := stop()
	once(t, p.bootstrap, topic, acknowledged)
	if n := stored(t, direct, topic); n != len(acknowledged) {
		t.Errorf("%d records are stored, %d were acknowledged", n, len(acknowledged))
	}
}

const shortStall = "limits: {stall: 1s, handshake: 2s}\n"

// stopped stops a peer for longer than limits.stall, until who writes to it has ended a connection. It gives the memory which that needed, in MiB.
func stopped(t *testing.T, name string, signal func(syscall.Signal), writer *testservice.Sidecar) (held int) {
	t.Helper()
	ended := endedByErrors(t, writer)
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	eventually(t, "the end of a connection to "+name, func() bool {
		held = max(held, rss(t, writer.PID()))
		return endedByErrors(t, writer) > ended
	})
	time.Sleep(time.Second) // the producer tries again meanwhile
	return max(held, rss(t, writer.PID()))
}

// endedByErrors counts connections of all listeners.
func endedByErrors(t *testing.T, s *testservice.Sidecar) (n int) {
	t.Helper()
	_, figures := get(t, s, "/metrics")
	for _, line := range linesWith(figures, "cipherlane_sidecar_connections_ended_total{", `reason="error"`) {
		some, err := strconv.Atoi(strings.Fields(line)[1])
		if err != nil {
			t.Fatal(err)
		}
		n += some
	}
	return n
}

// created makes a topic of one partition and one replica that takes large batches, and tells who leads it.
func created(t *testing.T, bootstrap, topic string) (leader int) {
	t.Helper()
	admin, most := kadm.NewClient(kafkaClient(t, bootstrap)), strconv.Itoa(32<<20)
	if _, err := admin.CreateTopic(within(t, 20*time.Second), 1, 1, map[string]*string{"max.message.bytes": &most}, topic); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a leader", func() bool {
		topics, err := admin.ListTopics(within(t, 20*time.Second), topic)
		if err != nil {
			t.Fatal(err)
		}
		leader = int(topics[topic].Partitions[0].Leader)
		return topics[topic].Err == nil && leader > 0
	})
	return leader
}

// stored tells how many records a topic of one partition holds.
func stored(t *testing.T, bootstrap, topic string) int {
	t.Helper()
	ends, err := kadm.NewClient(kafkaClient(t, bootstrap)).ListEndOffsets(within(t, 20*time.Second), topic)
	if err != nil || ends.Error() != nil {
		t.Fatal(err, ends.Error())
	}
	return int(ends[topic][0].Offset)
}

// noise is what no compression makes smaller.
func noise(size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(rand.Uint32())
	}
	return p
}
