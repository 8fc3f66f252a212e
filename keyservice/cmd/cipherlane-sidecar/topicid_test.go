// Clients that know topics by ids which the sidecar has not seen yet: it has just begun, and they have their Metadata from before.

package main

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// topicID asks the broker itself.
func topicID(t *testing.T, broker, topic string) [16]byte {
	t.Helper()
	topics, err := kadm.NewClient(kafkaClient(t, broker)).ListTopics(within(t, 20*time.Second), topic)
	if err != nil || topics[topic].Err != nil {
		t.Fatal(topics, err)
	}
	return topics[topic].ID
}

func (g *guarded) topicID(t *testing.T, topic string) [16]byte {
	t.Helper()
	return topicID(t, g.broker, topic)
}

// fetchByID fetches topics by their ids, on a connection that asks for nothing else, and gives the code of each.
func fetchByID(t *testing.T, c *kgo.Client, ids ...[16]byte) (codes []int16) {
	t.Helper()
	q := kmsg.NewPtrFetchRequest()
	q.MaxBytes, q.MaxWaitMillis, q.SessionEpoch = 1<<20, 100, -1
	for _, id := range ids {
		p := kmsg.NewFetchRequestTopicPartition()
		p.PartitionMaxBytes = 1 << 20
		q.Topics = append(q.Topics, kmsg.FetchRequestTopic{TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{p}})
	}
	r, err := c.SeedBrokers()[0].Request(within(t, 20*time.Second), q)
	if err != nil {
		t.Fatal("the connection was not kept:", err)
	}
	got, ok := r.(*kmsg.FetchResponse)
	if !ok || got.Version < 13 || got.ErrorCode != 0 {
		t.Fatalf("%+v", r)
	}
	for _, id := range ids {
		i := slices.IndexFunc(got.Topics, func(t kmsg.FetchResponseTopic) bool { return t.TopicID == id })
		if i < 0 {
			t.Fatalf("no answer about %x in %+v", id, got.Topics)
		}
		codes = append(codes, got.Topics[i].Partitions[0].ErrorCode)
	}
	return codes
}

var nobodys = [16]byte{0xc1, 0x9e, 1, 2, 3}

// [CL-ACC-011] [CL-ACC-016] The sidecar asks the cluster for the names; an id that no topic has is an error of that topic only.
func testNewTopicIDs(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	open, other := g.topicID(t, "open"), g.topicID(t, "other")
	reader := g.as(t, "reader")
	for range 2 {
		if codes := fetchByID(t, reader, nobodys, open, other); !slices.Equal(codes, []int16{kerr.UnknownTopicID.Code, 0, kerr.TopicAuthorizationFailed.Code}) {
			t.Error(codes)
		}
	}
	if _, figures := get(t, g.sidecar, "/metrics"); strings.Contains(figures, "cipherlane_sidecar_connections_ended_total") {
		t.Error(figures)
	}
}

// [CL-SDC-015] The same where the sidecar encrypts.
func TestNewTopicIDsWherePayloadIsEncrypted(t *testing.T) {
	broker := testservice.RunBroker(t, "--topics", "claims:1,answers:1")
	service := testservice.StartKeyService(t, claimsPolicy)
	first := encryptingPair(t, service, broker.Bootstrap)
	produce(t, kafkaClient(t, first.Listeners["kafka"]), "claims", 3)
	id := topicID(t, broker.Bootstrap, "claims")
	c := kafkaClient(t, encryptingPair(t, service, broker.Bootstrap).Listeners["kafka"])
	if codes := fetchByID(t, c, nobodys, id); !slices.Equal(codes, []int16{kerr.UnknownTopicID.Code, 0}) {
		t.Error(codes)
	}
	q := kmsg.NewPtrProduceRequest()
	q.Acks, q.TimeoutMillis = 1, 5000
	for _, id := range [][16]byte{nobodys, id} {
		q.Topics = append(q.Topics, kmsg.ProduceRequestTopic{TopicID: id, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: []byte("no batch")}}})
	}
	r, err := c.SeedBrokers()[0].Request(within(t, 20*time.Second), q)
	got, ok := r.(*kmsg.ProduceResponse)
	if err != nil || !ok || len(got.Topics) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	for i, want := range []*kerr.Error{kerr.UnknownTopicID, kerr.CorruptMessage} {
		if code := got.Topics[i].Partitions[0].ErrorCode; code != want.Code {
			t.Errorf("%d: code %d, want %v", i, code, want)
		}
	}
	if codes := fetchByID(t, c, id); !slices.Equal(codes, []int16{0}) {
		t.Error("afterwards:", codes)
	}
}

// [CL-SDC-112] A refusal that cannot be answered ends the connection, and nothing of the request is sent on: also what would be allowed is not.
func testAccessWithoutAcknowledgement(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	before := g.end(t, "busy")
	q := kmsg.NewPtrProduceRequest()
	q.TimeoutMillis = 5000
	for _, name := range []string{"busy", "other"} {
		q.Topics = append(q.Topics, kmsg.ProduceRequestTopic{Topic: name, TopicID: g.topicID(t, name), Partitions: []kmsg.ProduceRequestTopicPartition{{Records: oneRecord()}}})
	}
	writer := g.as(t, "writer", kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()) // which kgo puts into every Produce
	send := func() { _, _ = writer.SeedBrokers()[0].Request(within(t, 20*time.Second), q) }
	send()
	eventually(t, "the end of the connection", func() bool {
		return strings.Contains(g.sidecar.Log.String(), "only the end of the connection can say so")
	})
	if after := g.end(t, "busy"); after != before {
		t.Errorf("%d records were sent on", after-before)
	}
	q.Topics = q.Topics[:1]
	send()
	eventually(t, "the record that is allowed", func() bool { return g.end(t, "busy") == before+1 })
}

// oneRecord is a batch of one record.
func oneRecord() []byte {
	r := kmsg.Record{Value: []byte("value")}
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	b := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: r.AppendTo(nil)}
	b.Length = int32(49 + len(b.Records))
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// end gives the end offset of partition 0.
func (g *guarded) end(t *testing.T, topic string) int64 {
	t.Helper()
	ends, err := kadm.NewClient(kafkaClient(t, g.broker)).ListEndOffsets(within(t, 20*time.Second), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}
