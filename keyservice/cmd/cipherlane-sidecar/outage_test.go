// What Metadata shows while the key service is away.

package main

import (
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// codesOf asks one connection for Metadata of topics, of all if q names none, and gives the error code of each that is answered. Whatever
// becomes of the topics, there are brokers; and only of topics without an error there are partitions.
func codesOf(t *testing.T, c *kgo.Client, q *kmsg.MetadataRequest) map[string]int16 {
	t.Helper()
	r, err := c.SeedBrokers()[0].Request(within(t, 20*time.Second), q)
	got, ok := r.(*kmsg.MetadataResponse)
	if err != nil || !ok || len(got.Brokers) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	codes := map[string]int16{}
	for _, topic := range got.Topics {
		name := "?"
		if topic.Topic != nil {
			name = *topic.Topic
		}
		codes[name] = topic.ErrorCode
		if (topic.ErrorCode == 0) != (len(topic.Partitions) > 0) {
			t.Errorf("%s: code %d and %d partitions", name, topic.ErrorCode, len(topic.Partitions))
		}
	}
	return codes
}

func named(topics ...string) *kmsg.MetadataRequest {
	q := kmsg.NewPtrMetadataRequest()
	q.Topics = []kmsg.MetadataRequestTopic{}
	for _, topic := range topics {
		q.Topics = append(q.Topics, kmsg.MetadataRequestTopic{Topic: &topic})
	}
	return q
}

// [CL-SDC-113] While the key service is away, of the topics that a client names those whose lease goes on are answered, and all others with an error after
// which it asks again, be they allowed, refused, forbidden or not there; of topics that nobody named, those are shown that are known to be allowed.
func testMetadataWhileKeyServiceIsAway(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy+"  - {principals: [\"spiffe://dev.cipherlane/reader\"], actions: [describe], topics: [busy], lease: {expires_in: 1h}}\n")
	reader := g.as(t, "reader")
	refused, later := kerr.TopicAuthorizationFailed.Code, kerr.LeaderNotAvailable.Code
	some := []string{"other", "busy", "mixed", "secret"}
	all := &kmsg.MetadataRequest{}
	byID := named()
	byID.Topics = []kmsg.MetadataRequestTopic{{TopicID: g.topicID(t, "busy")}, {TopicID: g.topicID(t, "mixed")}}

	for what, want := range map[*kmsg.MetadataRequest]map[string]int16{
		named(some...): {"other": refused, "busy": 0, "mixed": 0, "secret": refused},
		byID:           {"busy": 0, "mixed": 0},
		all:            {"open": 0, "mixed": 0, "fetched": 0, "busy": 0},
	} {
		if got := codesOf(t, reader, what); !maps.Equal(got, want) {
			t.Errorf("before: %v, want %v", got, want)
		}
	}
	g.service.Kill(t)
	eventually(t, "the end of what was decided, but for one lease", func() bool {
		return maps.Equal(codesOf(t, reader, named(some...)), map[string]int16{"other": later, "busy": 0, "mixed": later, "secret": later})
	})
	for what, want := range map[*kmsg.MetadataRequest]map[string]int16{
		named("busy"):            {"busy": 0},
		named("open", "no-such"): {"open": later, "no-such": later},
		byID:                     {"busy": 0, "?": later},
		all:                      {"busy": 0},
		named():                  {},
	} {
		if got := codesOf(t, reader, what); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
