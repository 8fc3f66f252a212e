package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// kafkaClient makes a franz-go client; every address that it is given must be the client side's.
func kafkaClient(t *testing.T, bootstrap string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.RetryTimeout(30 * time.Second)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func timeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func produce(t *testing.T, c *kgo.Client, topic string, n int) {
	t.Helper()
	ctx := timeout(t, time.Minute)
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "%d", i), Value: fmt.Appendf(nil, "value-%d", i)}
	}
	if err := c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// consume reads until it has n different values.
func consume(t *testing.T, c *kgo.Client, n int) map[string]int {
	t.Helper()
	ctx, seen := timeout(t, time.Minute), map[string]int{}
	for len(seen) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%v after %d of %d", err, len(seen), n)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
	}
	return seen
}

func TestRecordsThroughTwoSidecars(t *testing.T) {
	brokers := testservice.RunBroker(t, "--cluster", "3", "--topics", "claims:6")
	p := startPair(t, testservice.NewPKI(t), brokers.Bootstrap, "")
	produce(t, kafkaClient(t, p.bootstrap), "claims", 1000)
	seen := consume(t, kafkaClient(t, p.bootstrap, kgo.ConsumeTopics("claims"), kgo.ConsumerGroup("readers"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 1000)
	if len(seen) != 1000 {
		t.Fatal(len(seen))
	}
	if t.Failed() {
		t.Log(p.client.Log, p.broker.Log)
	}
}
