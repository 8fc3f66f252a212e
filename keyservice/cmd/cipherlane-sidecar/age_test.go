// The end of connections that live for long.

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// [CL-SDC-021] [CL-SDC-022] Connections that end by max_age, again and again under load, cost no record: not one that is produced, and not one that a
// group consumes meanwhile.
func TestMaxAge(t *testing.T) {
	broker := testservice.StartBroker(t, "aged:3")
	p := startPair(t, testservice.NewPKI(t), broker, "limits: {max_age: 1s}\n")
	reading, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader := kafkaClient(t, p.bootstrap, kgo.ConsumeTopics("aged"), kgo.ConsumerGroup("aged"))
	seen, done := map[string]int{}, make(chan struct{})
	go func() {
		defer close(done)
		for reading.Err() == nil {
			reader.PollFetches(reading).EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
		}
	}()
	stop := load(t, p.bootstrap, "aged")
	time.Sleep(6 * time.Second)
	for _, s := range []*testservice.Sidecar{p.client, p.broker} { // now: clients that close may reset their connections
		_, figures := get(t, s, "/metrics")
		if !strings.Contains(figures, `reason="age"`) || strings.Contains(figures, `reason="error"`) {
			t.Errorf("connections did not end by their age alone: %s %s", figures, s.Log)
		}
	}
	acknowledged := stop()
	once(t, p.bootstrap, "aged", acknowledged)
	time.Sleep(2 * time.Second)
	cancel()
	<-done
	for value := range acknowledged {
		if seen[value] == 0 {
			t.Errorf("the group never saw %s", value)
		}
	}
}
