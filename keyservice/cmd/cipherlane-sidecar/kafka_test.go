package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// dialed notes which addresses clients connect to.
type dialed struct {
	mu  sync.Mutex
	all map[string]bool
}

func (d *dialed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.all[address] = true
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

// kafkaClient makes a franz-go client.
func kafkaClient(t *testing.T, bootstrap string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.RetryTimeout(time.Minute), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func produce(t *testing.T, c *kgo.Client, topic string, n int) {
	t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "%d", i), Value: fmt.Appendf(nil, "value-%d", i)}
	}
	if err := c.ProduceSync(within(t, time.Minute), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// consume reads until it has n different values, and tells how often each came.
func consume(t *testing.T, c *kgo.Client, n int) map[string]int {
	t.Helper()
	ctx, seen := within(t, time.Minute), map[string]int{}
	for len(seen) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%v after %d of %d", err, len(seen), n)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
	}
	return seen
}

// TestCluster is all that needs three brokers, which take some time to start.
func TestCluster(t *testing.T) {
	brokers := testservice.RunBroker(t, "--cluster", "3", "--auto-create", "--topics", "claims:6", "--topics", "moving:3")
	pki := testservice.NewPKI(t)
	p := startPair(t, pki, brokers.Bootstrap, "grace_period: 5s\n")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.client.Log, p.broker.Log)
		}
	})
	t.Run("addresses", func(t *testing.T) { everyAddress(t, p) })
	t.Run("consumer group", func(t *testing.T) { group(t, p, "classic", kgo.ConsumerGroup("classic")) })
	t.Run("consumer group of KIP-848", func(t *testing.T) { group(t, p, "next", kgo.ConsumerGroup("next"), kgo.ServerSideBalancer()) })
	t.Run("share group", func(t *testing.T) { shareGroup(t, p) })
	t.Run("members come and go", func(t *testing.T) { members(t, p, "coming") })
	t.Run("members come and go, KIP-848", func(t *testing.T) { members(t, p, "coming-next", kgo.ServerSideBalancer()) })
	t.Run("transactions", func(t *testing.T) { transactions(t, p) })
	t.Run("records and offsets in one transaction", func(t *testing.T) { pipe(t, p, "piped") })
	t.Run("records and offsets in one transaction, Kafka 3.6", func(t *testing.T) { pipe(t, p, "piped-3.6", kgo.MaxVersions(kversion.V3_6_0())) })
	t.Run("java", func(t *testing.T) { javaClients(t, p) })
	t.Run("librdkafka", func(t *testing.T) { kcat(t, p) })
	t.Run("peers stop for a while", func(t *testing.T) { peersStop(t, pki, brokers) })
	t.Run("leaders move and brokers restart", func(t *testing.T) { leadersMove(t, p, brokers) })
	t.Run("a broker is forgotten", func(t *testing.T) { forgotten(t, pki, p, brokers) })
	t.Run("a sidecar restarts under load", func(t *testing.T) { sidecarRestarts(t, pki, brokers.Bootstrap) })
}

// [CL-SDC-011] Of three brokers, clients see only addresses of the sidecar.
func everyAddress(t *testing.T, p pair) {
	t.Helper()
	d := &dialed{all: map[string]bool{}}
	c := kafkaClient(t, p.bootstrap, kgo.Dialer(d.dial))
	produce(t, c, "claims", 300)
	cluster, err := kadm.NewClient(c).Metadata(within(t, time.Minute))
	if err != nil || len(cluster.Brokers) != 3 {
		t.Fatal(err, cluster.Brokers)
	}
	allowed := map[string]bool{p.bootstrap: true}
	for _, b := range cluster.Brokers {
		if port := int(b.Port); b.Host != "127.0.0.1" || port < p.base || port > p.base+9 {
			t.Errorf("an address that is not the sidecar's: %s:%d", b.Host, b.Port)
		}
		allowed[fmt.Sprintf("%s:%d", b.Host, b.Port)] = true
	}
	for address := range d.all {
		if !allowed[address] {
			t.Errorf("connected to %s", address)
		}
	}
	if len(d.all) < 4 {
		t.Errorf("connected to %v only", d.all)
	}
}

func group(t *testing.T, p pair, topic string, options ...kgo.Opt) {
	t.Helper()
	produce(t, kafkaClient(t, p.bootstrap, kgo.AllowAutoTopicCreation()), topic, 500)
	c := kafkaClient(t, p.bootstrap, append(options, kgo.ConsumeTopics(topic))...)
	consume(t, c, 500)
	if err := c.CommitUncommittedOffsets(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
}

// shares counts the partitions that a member of a group has.
type shares struct{ n atomic.Int64 }

func (s *shares) options() []kgo.Opt {
	count := func(by int64) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			for _, partitions := range changed {
				s.n.Add(by * int64(len(partitions)))
			}
		}
	}
	return []kgo.Opt{kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)), kgo.OnPartitionsLost(count(-1))}
}

// members joins two to a group, which share its six partitions, and lets one leave, whose partitions the other gets.
func members(t *testing.T, p pair, name string, options ...kgo.Opt) {
	t.Helper()
	var one, other shares
	join := func(s *shares) *kgo.Client {
		own := append(slices.Clone(options), kgo.ConsumerGroup(name), kgo.ConsumeTopics("claims"))
		return kafkaClient(t, p.bootstrap, append(own, s.options()...)...)
	}
	first := join(&one)
	eventually(t, "all partitions for one", func() bool { return one.n.Load() == 6 })
	join(&other)
	eventually(t, "three partitions for each", func() bool { return one.n.Load() == 3 && other.n.Load() == 3 })
	first.Close()
	eventually(t, "all partitions for the other", func() bool { return other.n.Load() == 6 })
}

// pipe reads a topic and writes another, each batch and its offsets in one transaction.
func pipe(t *testing.T, p pair, to string, options ...kgo.Opt) {
	t.Helper()
	session, err := kgo.NewGroupTransactSession(append([]kgo.Opt{
		kgo.SeedBrokers(p.bootstrap), kgo.TransactionalID(to), kgo.ConsumerGroup(to), kgo.ConsumeTopics("classic"), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ctx, moved := within(t, time.Minute), 0
	for moved < 500 {
		fetches := session.PollFetches(ctx)
		if err := errors.Join(fetches.Err(), session.Begin()); err != nil {
			t.Fatal(err, moved)
		}
		fetches.EachRecord(func(r *kgo.Record) { session.Produce(ctx, &kgo.Record{Topic: to, Value: r.Value}, nil) })
		committed, err := session.End(ctx, kgo.TryCommit)
		if err != nil {
			t.Fatal(err, moved)
		}
		if committed {
			moved += fetches.NumRecords()
		}
	}
	for value, times := range consume(t, kafkaClient(t, p.bootstrap, kgo.ConsumeTopics(to), kgo.FetchIsolationLevel(kgo.ReadCommitted())), 500) {
		if times != 1 {
			t.Errorf("%s came %d times", value, times)
		}
	}
	offsets, err := kadm.NewClient(kafkaClient(t, p.bootstrap)).FetchOffsets(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	offsets.Each(func(o kadm.OffsetResponse) { sum += o.At })
	if sum < 500 {
		t.Errorf("offsets of %d records only are committed", sum)
	}
}

func shareGroup(t *testing.T, p pair) {
	t.Helper()
	producer := kafkaClient(t, p.bootstrap, kgo.AllowAutoTopicCreation())
	produce(t, producer, "shared", 1)
	c := kafkaClient(t, p.bootstrap, kgo.ShareGroup("share"), kgo.ConsumeTopics("shared"))
	ctx, got := within(t, time.Minute), 0
	go func() { // a share group begins at the end of the topic
		for i := 0; ctx.Err() == nil; i++ {
			producer.ProduceSync(ctx, &kgo.Record{Topic: "shared", Value: fmt.Appendf(nil, "later-%d", i)})
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for got < 10 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err, got)
		}
		got += fetches.NumRecords()
	}
}

func transactions(t *testing.T, p pair) {
	t.Helper()
	produce(t, kafkaClient(t, p.bootstrap, kgo.AllowAutoTopicCreation()), "transactions", 1)
	c := kafkaClient(t, p.bootstrap, kgo.TransactionalID("tx"))
	ctx := within(t, time.Minute)
	for i, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := c.ProduceSync(ctx, &kgo.Record{Topic: "transactions", Value: fmt.Appendf(nil, "tx-%d", i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := c.EndTransaction(ctx, commit); err != nil {
			t.Fatal(err)
		}
	}
	seen := consume(t, kafkaClient(t, p.bootstrap, kgo.ConsumeTopics("transactions"), kgo.FetchIsolationLevel(kgo.ReadCommitted())), 3)
	if seen["tx-0"] != 1 || seen["tx-1"] != 0 || seen["tx-2"] != 1 {
		t.Fatal(seen)
	}
}

// load produces with idempotence until stop is called, and gives the values that were acknowledged.
func load(t *testing.T, bootstrap, topic string) (stop func() map[string]bool) {
	t.Helper()
	return loadWith(t, bootstrap, topic, time.Millisecond, nil)
}

// loadWith does so with a pause after each record, which has headers, and with options.
func loadWith(t *testing.T, bootstrap, topic string, pause time.Duration, headers []kgo.RecordHeader, options ...kgo.Opt) (stop func() map[string]bool) {
	t.Helper()
	c := kafkaClient(t, bootstrap, append(options, kgo.DefaultProduceTopic(topic), kgo.RecordRetries(1000), kgo.ProducerLinger(time.Millisecond))...)
	ctx, cancel := context.WithCancel(t.Context())
	acknowledged, done := map[string]bool{}, make(chan struct{})
	var mu sync.Mutex
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			value := fmt.Sprintf("load-%d", i)
			c.Produce(t.Context(), &kgo.Record{Value: []byte(value), Headers: headers}, func(_ *kgo.Record, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					acknowledged[value] = true
				}
			})
			time.Sleep(pause)
		}
	}()
	return func() map[string]bool {
		cancel()
		<-done
		if err := c.Flush(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		return acknowledged
	}
}

// once checks that a topic holds each acknowledged value exactly once.
func once(t *testing.T, bootstrap, topic string, acknowledged map[string]bool) {
	t.Helper()
	if len(acknowledged) < 100 {
		t.Fatalf("only %d records were acknowledged", len(acknowledged))
	}
	seen := consume(t, kafkaClient(t, bootstrap, kgo.ConsumeTopics(topic)), len(acknowledged))
	for value := range acknowledged {
		if seen[value] != 1 {
			t.Errorf("%s was stored %d times", value, seen[value])
		}
	}
}

// leadersMove kills a broker that leads a partition to which records go, and starts it again.
func leadersMove(t *testing.T, p pair, brokers *testservice.Broker) {
	t.Helper()
	const victim = 2 // the tests that follow signal others, by the ids that they had at first
	admin := kadm.NewClient(kafkaClient(t, p.bootstrap))
	leads := func(id int32) int { // how many partitions; -1 while nobody says
		topics, err := admin.ListTopics(within(t, time.Minute), "moving")
		if err != nil || topics.Error() != nil {
			return -1
		}
		n := 0
		for _, partition := range topics["moving"].Partitions {
			if partition.Leader == id {
				n++
			}
		}
		return n
	}
	if leads(victim) < 1 {
		t.Fatal("the broker leads no partition")
	}
	stop := load(t, p.bootstrap, "moving")
	time.Sleep(500 * time.Millisecond)
	brokers.Signal(t, victim, syscall.SIGKILL)
	eventually(t, "other leaders", func() bool { return leads(victim) == 0 && leads(1)+leads(3) == 3 })
	time.Sleep(2 * time.Second)
	brokers.Restart(t, victim)
	time.Sleep(4 * time.Second)
	once(t, p.bootstrap, "moving", stop())
}

// [CL-SDC-022] Idempotent producers lose nothing when their sidecar ends, with grace or by force, and comes back at the same address.
func sidecarRestarts(t *testing.T, pki *testservice.PKI, brokers string) {
	t.Helper()
	base := freeRange(t, 12)
	config := fmt.Sprintf("side: broker\nkafka: {listen: '127.0.0.1:%d', upstream: %s, brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\ngrace_period: 2s\n%s",
		base, list(brokers), base+1, tlsPart(t, pki, "broker-side"))
	running := testservice.StartSidecar(t, config)
	client := startClientSide(t, pki, running.Listeners["kafka"], freeRange(t, 10), "")
	bootstrap := client.Listeners["kafka"]
	produce(t, kafkaClient(t, bootstrap, kgo.AllowAutoTopicCreation()), "restarts", 1)
	stop := load(t, bootstrap, "restarts")
	for _, end := range []func(){func() { running.Stop(t) }, func() { running.Kill(t) }} {
		time.Sleep(time.Second)
		end()
		running = testservice.StartSidecar(t, config)
	}
	time.Sleep(time.Second)
	once(t, bootstrap, "restarts", stop())
}
