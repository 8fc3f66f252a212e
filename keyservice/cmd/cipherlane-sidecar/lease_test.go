// Leases of access: they end while a Fetch waits, with a window, when somebody is revoked, and when the key service is away.

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// [CL-ACC-013] [CL-SDC-021] A lease that ends while a Fetch waits stops its delivery and ends the connection; taking the grant away, or revoking, does the same to what comes next.
func testLeaseEndsDuringAFetch(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	reader := g.as(t, "reader", kgo.ConsumeTopics("fetched"), kgo.FetchMaxWait(6*time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err := write(t, kafkaClient(t, g.broker), "fetched"); err != nil { // past the sidecar
		t.Fatal(err)
	}
	if n, err := readError(t, reader); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	time.Sleep(500 * time.Millisecond) // its next Fetch waits at the broker now, up to 6 seconds
	g.replacePolicy(t, strings.Replace(accessPolicy, "actions: [read, group], topics: [open, mixed, secret, fetched]", "actions: [read, group], topics: [mixed]", 1))
	time.Sleep(2500 * time.Millisecond) // longer than the lease
	if err := write(t, kafkaClient(t, g.broker), "fetched"); err != nil {
		t.Fatal(err)
	}
	if n, err := readError(t, reader); n != 0 || !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("%d records, %v", n, err)
	}
	eventually(t, "the end of the connection", func() bool { return strings.Contains(g.get(t, "/metrics"), `reason="lease"} 1`) })
	writer := g.as(t, "writer")
	if err := write(t, writer, "fetched"); err != nil {
		t.Fatal(err)
	}
	g.revoke(t, "writer")
	eventually(t, "the revocation", func() bool { return errors.Is(write(t, writer, "fetched"), kerr.TopicAuthorizationFailed) })
}

// revoke takes everything from a principal, as an operator.
func (g *guarded) revoke(t *testing.T, name string) {
	t.Helper()
	request := map[string]string{"principal": "spiffe://dev.cipherlane/" + name, "reason": "test"}
	if err := g.operator(t).Post(t.Context(), "/v1/revocations", request, &struct{}{}); err != nil {
		t.Fatal(err)
	}
}

// [CL-ACC-012] [CL-SDC-113] When the key service is away, leases go on to their end, then nothing passes, and nothing passes unasked. Clients are told to
// try again, not that they may not.
func testKeyServiceAway(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	writer := g.as(t, "writer")
	if err := write(t, writer, "away"); err != nil {
		t.Fatal(err)
	}
	g.service.Kill(t)
	began := time.Now()
	eventually(t, "the end of the lease", func() bool { return g.produced(t, writer, "away") == kerr.NotEnoughReplicas.Code })
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the lease of 2 s went on for %s", took)
	}
	if code := g.produced(t, g.as(t, "writer"), "mixed"); code != kerr.NotEnoughReplicas.Code {
		t.Errorf("what was never asked is answered with %d", code)
	}
	seed := g.as(t, "reader").SeedBrokers()[0]
	mixed, beat := "mixed", kmsg.NewPtrHeartbeatRequest()
	beat.Group = "readers-1"
	named, fetch := kmsg.NewPtrMetadataRequest(), kmsg.NewPtrFetchRequest()
	named.Topics = []kmsg.MetadataRequestTopic{{Topic: &mixed}}
	fetch.Topics = []kmsg.FetchRequestTopic{{TopicID: g.topicID(t, mixed), Topic: mixed, Partitions: []kmsg.FetchRequestTopicPartition{kmsg.NewFetchRequestTopicPartition()}}}
	for want, q := range map[*kerr.Error]kmsg.Request{kerr.LeaderNotAvailable: named, kerr.KafkaStorageError: fetch, kerr.CoordinatorNotAvailable: beat} {
		r, err := seed.Request(within(t, 20*time.Second), q)
		if code := codeIn(r); err != nil || code != want.Code || !want.Retriable {
			t.Errorf("%s: code %d, %v; want %v", kmsg.NameForKey(q.Key()), code, err, want)
		}
	}
	log, err := os.ReadFile(g.audit)
	if err != nil || !strings.Contains(string(log), `"code":"key-service-unavailable"`) {
		t.Error("the refusal is not recorded", err)
	}
}

// produced sends one record, without the trials of a client, and gives the code of the answer.
func (g *guarded) produced(t *testing.T, c *kgo.Client, topic string) int16 {
	t.Helper()
	q := kmsg.NewPtrProduceRequest()
	q.Acks, q.TimeoutMillis = 1, 5000
	q.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, TopicID: g.topicID(t, topic), Partitions: []kmsg.ProduceRequestTopicPartition{{Records: oneRecord()}}}}
	ctx := within(t, 20*time.Second)
	r, err := c.SeedBrokers()[0].Request(ctx, q)
	if err != nil { // the connection has just ended with its last lease [CL-SDC-021]: the next one answers
		r, err = c.SeedBrokers()[0].Request(ctx, q)
	}
	got, ok := r.(*kmsg.ProduceResponse)
	if err != nil || !ok {
		t.Fatal(r, err)
	}
	return got.Topics[0].Partitions[0].ErrorCode
}

// codeIn gives the error code of an answer about one thing.
func codeIn(r kmsg.Response) int16 {
	switch r := r.(type) {
	case *kmsg.MetadataResponse:
		return r.Topics[0].ErrorCode
	case *kmsg.FetchResponse:
		return r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.HeartbeatResponse:
		return r.ErrorCode
	}
	return 0
}

// [CL-ACC-013] [CL-POL-010] A window ends in the middle of a connection.
func testWindowEnds(t *testing.T, broker string) {
	t.Helper()
	end := time.Now().UTC().Add(9 * time.Second)
	policy := accessPolicy + fmt.Sprintf("  - {principals: [\"spiffe://dev.cipherlane/writer\"], actions: [write], topics: [windowed], not_after: %s, lease: {expires_in: 1h}}\n", end.Format(time.RFC3339))
	g := startGuarded(t, broker, strings.Replace(policy, "expires_in: 2s", "expires_in: 1h", 1))
	writer := g.as(t, "writer")
	if time.Until(end) < 2*time.Second {
		t.Skip("this machine is too busy: the window has nearly ended before it was tried")
	}
	if err := write(t, writer, "windowed"); err != nil {
		t.Fatal(err)
	}
	for time.Now().Before(end) {
		time.Sleep(50 * time.Millisecond)
	}
	if err := write(t, writer, "windowed"); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("after the window: %v", err)
	}
}

// [CL-POL-014] [CL-ACC-013] The policy changes again and again while records flow: a right is taken away and given back, and nothing else is lost,
// and nothing passes that is not granted.
func testPolicyReloadedWhileBusy(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	stop := g.keepBusy(t)
	other, accepted, before := g.as(t, "writer"), 0, stored(t, g.broker, "mixed")
	try := func() error {
		err := write(t, other, "mixed")
		switch {
		case err == nil:
			accepted++
		case !errors.Is(err, kerr.TopicAuthorizationFailed):
			t.Fatal(err)
		}
		return err
	}
	for i := range 2 {
		eventually(t, "the right", func() bool { return try() == nil })
		g.replacePolicy(t, strings.Replace(accessPolicy, "[write, transaction], topics: [open, mixed, ", "[write, transaction], topics: [open, ", 1))
		eventually(t, "the end of the right", func() bool { return try() != nil })
		for range 5 {
			if try() == nil {
				t.Error("a right that was taken away is back")
			}
		}
		if err := write(t, other, "other"); !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Error(err)
		}
		g.replacePolicy(t, accessPolicy+fmt.Sprintf("# %d\n", i))
	}
	eventually(t, "the right, at the end", func() bool { return try() == nil })
	if n := stored(t, g.broker, "mixed") - before; n != accepted {
		t.Errorf("%d records are stored, %d were accepted", n, accepted)
	}
	busy := stop()
	if n := len(consume(t, kafkaClient(t, g.broker, kgo.ConsumeTopics("busy"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), busy)); n != busy {
		t.Error(n)
	}
}

// keepBusy writes to the topic busy, 300 records at least, until stop is called: that fails the test if one was not accepted, and tells how many there
// were.
func (g *guarded) keepBusy(t *testing.T) (stop func() int) {
	t.Helper()
	writer, enough, done := g.as(t, "writer"), make(chan struct{}), make(chan int)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-enough:
				if i >= 300 {
					done <- i
					return
				}
			case <-t.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			if err := writer.ProduceSync(t.Context(), &kgo.Record{Topic: "busy", Value: fmt.Append(nil, i)}).FirstErr(); err != nil && t.Context().Err() == nil {
				t.Errorf("record %d: %v", i, err)
			}
		}
	}()
	return func() int {
		close(enough)
		return <-done
	}
}
