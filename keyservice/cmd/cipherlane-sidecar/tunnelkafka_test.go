// Tunnels with a real broker and real clients.

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// TestTunnelsToABroker has one broker for all, as starting one takes longer than the tests.
func TestTunnelsToABroker(t *testing.T) {
	broker := testservice.StartBroker(t, "many:12,slow:1,grown:1,renewed:3,restarted:3")
	t.Run("100 clients", func(t *testing.T) { tunnelsOfManyClients(t, broker) })
	t.Run("a slow reader", func(t *testing.T) { tunnelsWithASlowReader(t, broker) })
	t.Run("at once", func(t *testing.T) { // they wait for most of their time
		for name, run := range map[string]func(*testing.T, string){
			"a client that grows":         tunnelsWithAClientThatGrows,
			"a certificate is renewed":    tunnelsOfRenewedCertificates,
			"sidecars restart under load": tunnelsOfRestartedSidecars,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, broker)
			})
		}
	})
}

// [CL-SDC-040] 100 clients produce and consume over no more than four TLS connections to an address, and get what was produced.
func tunnelsOfManyClients(t *testing.T, broker string) {
	t.Helper()
	const clients, each = 100, 20
	p := tunnelled(t, testservice.NewPKI(t), broker, "tunnels: {connections: 4, streams: 120}\n", "tunnels: {streams: 120}\n")
	var most atomic.Int64
	watching, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watching.Err() == nil {
			most.Store(max(most.Load(), int64(accepted(t, p.broker))))
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var all sync.WaitGroup
	for i := range clients {
		c := kafkaClient(t, p.bootstrap, kgo.DefaultProduceTopic("many"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		all.Go(func() {
			for n := range each {
				r := &kgo.Record{Partition: int32(i % 12), Value: fmt.Appendf(nil, "%d-%d", i, n)}
				if err := c.ProduceSync(within(t, time.Minute), r).FirstErr(); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	for i := range clients { // each reads the partition into which it wrote
		c := kafkaClient(t, p.bootstrap, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"many": {int32(i % 12): kgo.NewOffset().AtStart()}}),
			kgo.FetchMaxWait(time.Second))
		all.Go(func() { readOwn(t, c, i, each) })
	}
	all.Wait()
	stop()
	<-watched
	t.Log("TLS connections:", most.Load(), "streams:", figure(t, p.broker, "cipherlane_sidecar_tunnel_streams_opened_total"))
	if n := most.Load(); n > 2*4 || n < 2 {
		t.Errorf("%d TLS connections to two addresses", n)
	}
	if n := figure(t, p.broker, "cipherlane_sidecar_tunnel_streams_opened_total"); n < 2*clients {
		t.Error("only", n, "streams")
	}
}

// readOwn reads until all values of one client have come, in order and once.
func readOwn(t *testing.T, c *kgo.Client, client, each int) {
	t.Helper()
	ctx, next := within(t, time.Minute), 0
	for next < each {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Errorf("client %d after %d: %v", client, next, err)
			return
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !strings.HasPrefix(string(r.Value), fmt.Sprintf("%d-", client)) {
				return
			}
			if want := fmt.Sprintf("%d-%d", client, next); string(r.Value) != want {
				t.Errorf("%q instead of %q", r.Value, want)
			}
			next++
		})
	}
}

// [CL-SDC-045] A client that fetches and does not read its answers holds back nobody in the same tunnel.
func tunnelsWithASlowReader(t *testing.T, broker string) {
	t.Helper()
	p := tunnelled(t, testservice.NewPKI(t), broker, "tunnels: {connections: 1}\n", "tunnels: {}\n")
	produce(t, kafkaClient(t, broker), "slow", 5000)
	var slow []byte
	for i := range int32(300) {
		slow = append(slow, fetchAll(t, "slow", i)...)
	}
	for range 5 {
		c := dial(t, p.bootstrap)
		_ = c.SetDeadline(time.Time{})
		go func() { _, _ = c.Write(slow) }()
	}
	eventually(t, "the slow readers to be stuck", func() bool {
		before := figure(t, p.client, `cipherlane_sidecar_tunnel_bytes_total{direction="in"}`)
		time.Sleep(500 * time.Millisecond)
		return before > 0 && figure(t, p.client, `cipherlane_sidecar_tunnel_bytes_total{direction="in"}`) == before
	})
	began := time.Now()
	produce(t, kafkaClient(t, p.bootstrap), "slow", 500)
	consume(t, kafkaClient(t, p.bootstrap, kgo.ConsumeTopics("slow")), 5000)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("others took %s", took)
	}
}

// fetchAll is a request for all that partition 0 holds.
func fetchAll(t *testing.T, topic string, correlation int32) []byte {
	t.Helper()
	fetch := kmsg.NewPtrFetchRequest()
	fetch.SetVersion(12) // with names
	fetch.MaxBytes, fetch.SessionEpoch = 1<<20, -1
	of, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	partition.PartitionMaxBytes = 1 << 20
	of.Topic, of.Partitions = topic, append(of.Partitions, partition)
	fetch.Topics = append(fetch.Topics, of)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("slow")).AppendRequest(nil, fetch, correlation)
}

// [CL-SDC-043] [CL-SDC-022] A producer that grows loses nothing when it is given TLS for itself, and is not ended again.
func tunnelsWithAClientThatGrows(t *testing.T, broker string) {
	t.Helper()
	p := tunnelled(t, testservice.NewPKI(t), broker, "tunnels: {own: {bytes: 65536, within: 10s}}\n", "tunnels: {}\n")
	stop := load(t, p.bootstrap, "grown")
	time.Sleep(4 * time.Second)
	own := figure(t, p.client, `cipherlane_sidecar_tunnel_own_total{reason="grown"}`)
	if own == 0 {
		t.Error("no connection has TLS for itself")
	}
	time.Sleep(2 * time.Second)
	if again := figure(t, p.client, `cipherlane_sidecar_tunnel_own_total{reason="grown"}`); again > own+1 {
		t.Errorf("it grows again and again: %d, then %d", own, again)
	}
	once(t, p.bootstrap, "grown", stop())
}

// [CL-SDC-044] [CL-SDC-022] Tunnels end before their certificates do; those with renewed ones take over, and nothing is lost.
func tunnelsOfRenewedCertificates(t *testing.T, broker string) {
	t.Helper()
	pki := testservice.NewPKI(t)
	p := tunnelled(t, pki, broker, "tunnels: {}\n", "tunnels: {}\n")
	renew := func(life time.Duration) {
		pki.Issue(t, "client-side", "spiffe://example.org/client-side", life)
		pki.Issue(t, "broker-side", "spiffe://example.org/broker-side", life)
		time.Sleep(3 * time.Second) // until they are noticed
	}
	renew(9 * time.Second)
	stop := load(t, p.bootstrap, "renewed")
	time.Sleep(time.Second)
	opened := figure(t, p.client, "cipherlane_sidecar_tunnels_opened_total")
	renew(time.Hour)
	time.Sleep(4 * time.Second) // the first ones have ended
	once(t, p.bootstrap, "renewed", stop())
	if now := figure(t, p.client, "cipherlane_sidecar_tunnels_opened_total"); now <= opened || opened == 0 {
		t.Errorf("%d tunnels, then %d", opened, now)
	}
	_, near := get(t, p.client, "/metrics")
	_, far := get(t, p.broker, "/metrics")
	if figures := near + far; !strings.Contains(figures, `reason="certificate"`) || strings.Contains(figures, `reason="error"`) { // the side that is first
		t.Error("connections did not end by their certificates alone:", figures)
	}
}

// [CL-SDC-022] Idempotent producers lose nothing when either sidecar of a tunnel ends, with grace or by force, and comes back.
func tunnelsOfRestartedSidecars(t *testing.T, broker string) {
	t.Helper()
	pki, base := testservice.NewPKI(t), freeRange(t, 24)
	side := func(name, upstream string, base int) string {
		return fmt.Sprintf("side: %s\nkafka: {listen: '127.0.0.1:%d', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\ngrace_period: 2s\ntunnels: {}\n%s",
			name, base, upstream, base+1, tlsPart(t, pki, name+"-side"))
	}
	far, near := side("broker", broker, base), side("client", fmt.Sprintf("127.0.0.1:%d", base), base+12)
	farSide, nearSide := testservice.StartSidecar(t, far), testservice.StartSidecar(t, near)
	stop := load(t, nearSide.Listeners["kafka"], "restarted")
	for _, end := range []func(*testservice.Sidecar){func(s *testservice.Sidecar) { s.Stop(t) }, func(s *testservice.Sidecar) { s.Kill(t) }} {
		time.Sleep(time.Second)
		end(farSide)
		farSide = testservice.StartSidecar(t, far)
		time.Sleep(time.Second)
		end(nearSide)
		nearSide = testservice.StartSidecar(t, near)
	}
	time.Sleep(time.Second)
	once(t, nearSide.Listeners["kafka"], "restarted", stop())
	if figure(t, farSide, "cipherlane_sidecar_tunnel_streams_opened_total") == 0 {
		t.Error("nothing went through tunnels")
	}
}

// [CL-SDC-045] [CL-ACC-011] Through tunnels, who may not is told so by Kafka's own error, on a connection that stays; each tunnel's streams are whom its certificate
// names, in decisions and in the audit log.
func testAccessThroughTunnels(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	own := g.issue(t, "sidecar")
	audit := t.TempDir() + "/sidecar.jsonl"
	far := testservice.StartSidecar(t, fmt.Sprintf("side: broker\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n"+
		"tunnels: {}\ntls: {ca: %s, certificate: %s, key: %s}\naccess: {urls: ['%s'], ca: %s, audit: {file: %s}}\n",
		g.broker, freeRange(t, 3), g.CA, own.Certificate, own.Key, g.service.URL, g.service.CA, audit))
	through := func(name string) (*kgo.Client, *testservice.Sidecar) {
		pair := g.issue(t, name)
		near := testservice.StartSidecar(t, fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n"+
			"tunnels: {connections: 1, unsupported: refuse}\ntls: {ca: %s, certificate: %s, key: %s}\n", far.Listeners["kafka"], freeRange(t, 3), g.CA, pair.Certificate, pair.Key))
		return kafkaClient(t, near.Listeners["kafka"], kgo.RetryTimeout(5*time.Second), kgo.RecordRetries(2)), near
	}
	writer, _ := through("writer")
	reader, near := through("reader")
	if err := write(t, writer, "open"); err != nil {
		t.Fatal(err)
	}
	if err := write(t, reader, "open"); !isDenied(err) {
		t.Error("a reader writes:", err)
	}
	if err := write(t, writer, "other"); !isDenied(err) {
		t.Error("a writer writes elsewhere:", err)
	}
	if err := write(t, writer, "open"); err != nil {
		t.Error("after a refusal:", err)
	}
	if n := figure(t, near, "cipherlane_sidecar_tunnel_streams_opened_total"); n > 4 {
		t.Errorf("refusals cost connections: %d", n)
	}
	lines, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"writer", "reader"} {
		if !strings.Contains(string(lines), `"principal":"spiffe://dev.cipherlane/`+who+`"`) {
			t.Errorf("%s is not in the audit log: %s", who, lines)
		}
	}
}

func isDenied(err error) bool {
	return err != nil && strings.Contains(err.Error(), kerr.TopicAuthorizationFailed.Message)
}
