// What is refused, counted, and hidden.

package payload

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// [CL-SDC-111]
func testTooLarge(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, func(o *Options) { o.MaxPlaintext = 2 << 20 })
	const limit = 1048588 // of the broker, for a batch
	value := bytes.Repeat([]byte("x"), limit-61-20)
	if err := produce(t, client(t, s.broker.Bootstrap, kgo.ProducerBatchMaxBytes(4<<20)), &kgo.Record{Topic: "large", Value: value}); err != nil {
		t.Fatalf("without encryption it fits: %v", err)
	}
	c := client(t, address, kgo.ProducerBatchMaxBytes(4<<20))
	if err := produce(t, c, &kgo.Record{Topic: "large", Value: value}); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("over the broker's limit: %v", err)
	}
	if err := produce(t, c, &kgo.Record{Topic: "large", Value: make([]byte, 2<<20+1)}); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("over the limit of plaintext: %v", err)
	}
}

// request sends one partition's records as they are.
func request(t *testing.T, address, topic string, acks int16, records []byte) (*kmsg.ProduceResponse, error) {
	t.Helper()
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = acks, 5000
	r.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: records}}}}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	c := client(t, address, kgo.MaxVersions(maxVersions()))
	response, err := c.Broker(1).Request(ctx, r)
	got, _ := response.(*kmsg.ProduceResponse)
	return got, err
}

// [CL-SDC-104] [CL-SDC-105]
func testRefusedBatches(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	old := append(make([]byte, 8), 0, 0, 0, 22, 1, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 4, 'o', 'l', 'd', '!')
	whole := batchOf(t, 0)
	for name, c := range map[string]struct {
		records []byte
		want    *kerr.Error
	}{
		"format 1":          {old, kerr.UnsupportedForMessageFormat},
		"a control batch":   {batchOf(t, 0x20), kerr.InvalidRecord},
		"an unknown codec":  {batchOf(t, 7), kerr.UnsupportedCompressionType},
		"cut":               {whole[:len(whole)-1], kerr.CorruptMessage},
		"cut in its header": {whole[:10], kerr.CorruptMessage},
		"a flipped bit":     {append(bytes.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1), kerr.CorruptMessage},
	} {
		response, err := request(t, address, "old", 1, c.records)
		if err != nil {
			t.Fatal(name, err)
		}
		p := response.Topics[0].Partitions[0]
		if p.ErrorCode != c.want.Code || p.ErrorMessage == nil || !strings.HasPrefix(*p.ErrorMessage, "cipherlane: ") {
			t.Errorf("%s: %v, want %v", name, kerr.ErrorForCode(p.ErrorCode), c.want)
		}
	}
	if response, err := request(t, address, "old", 1, whole); err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("a good batch: %+v %v", response, err)
	}
}

// [CL-SDC-112]
func testNoAcknowledgement(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	c := client(t, address, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	if err := produce(t, c, &kgo.Record{Topic: "control", Value: []byte(canary)}); err != nil {
		t.Fatal(err)
	}
	if read, err := consume(t, address, "control", 0, 1); err != nil || string(read[0].Value) != canary {
		t.Fatalf("%v %v", read, err)
	}
	_ = produce(t, c, &kgo.Record{Topic: "forbidden", Value: []byte(canary)}) // the end of the connection is the only answer
}

// [CL-KEY-017]
func testUsage(t *testing.T, s *scene) {
	t.Helper()
	address, handler := s.sidecar(t, nil)
	before := usageOf(t, s)
	var sent []*kgo.Record
	for range 50 {
		sent = append(sent, &kgo.Record{Topic: "usage", Value: make([]byte, 100)})
	}
	if err := produce(t, client(t, address), sent...); err != nil {
		t.Fatal(err)
	}
	if n := handler.cache.Counts(); n.Requests == 0 || n.Cached == 0 || n.FirstEnd <= 0 {
		t.Errorf("%+v", n)
	}
	deadline := time.Now().Add(wait)
	for time.Now().Before(deadline) {
		if err := produce(t, client(t, address), &kgo.Record{Topic: "usage"}); err != nil {
			t.Fatal(err)
		}
		if usageOf(t, s) >= before+50 {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Errorf("%d records were reported, and %d before", usageOf(t, s), before)
}

// [CL-SDC-113]
func TestWithoutTheKeyServiceNothingPasses(t *testing.T) {
	s := set(t, "outage:1")
	address, _ := s.sidecar(t, func(o *Options) { o.Keys.Deadline = time.Second })
	c := client(t, address)
	if err := produce(t, c, &kgo.Record{Topic: "outage", Value: []byte(canary)}); err != nil {
		t.Fatal(err)
	}
	s.service.Stop(t)
	time.Sleep(3 * time.Second) // longer than the lease
	if err := produce(t, c, &kgo.Record{Topic: "outage", Value: []byte(canary)}, &kgo.Record{Topic: "outage"}); !errors.Is(err, kerr.NotEnoughReplicas) {
		t.Errorf("producing: %v", err)
	}
	if read, err := consume(t, address, "outage", 0, 1); len(read) != 0 || !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("consuming: %v %v", read, err)
	}
	stored, err := consume(t, s.broker.Bootstrap, "outage", 0, 1)
	if err != nil || len(stored) != 1 || !envelope.Is(stored[0].Value) {
		t.Errorf("stored: %v %v", stored, err)
	}
}

// lost is a cluster that does not say which topics ids are of.
type lost struct{}

func (lost) Name(id [16]byte) (string, bool) { return "claims", id == [16]byte{1} }

func (lost) Resolve(context.Context, [][16]byte) (map[[16]byte]string, error) {
	return nil, errors.New("no broker answers")
}

// [CL-SDC-015] When the cluster does not answer, topics whose names are known go on, and others are an error of their own: no connection ends.
func TestTopicIDsWhileTheClusterDoesNotAnswer(t *testing.T) {
	s := &scene{service: testservice.StartKeyService(t, policy)}
	h := s.handler(t, nil)
	known, unknown := [16]byte{1}, [16]byte{2}
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks = 13, 1
	for _, id := range [][16]byte{known, unknown} {
		q.Topics = append(q.Topics, kmsg.ProduceRequestTopic{TopicID: id, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batchOf(t, 0)}}})
	}
	x := held(t, &flow.Exchange{Conn: &flow.Conn{Topics: lost{}}, Version: 13, Request: q})
	if err := h.Request(t.Context(), x); err != nil || len(q.Topics) != 1 || q.Topics[0].TopicID != known {
		t.Fatalf("%+v %v", q.Topics, err)
	}
	encrypted := q.Topics[0].Partitions[0].Records
	produced := kmsg.NewPtrProduceResponse()
	x.Response = produced
	if err := h.Response(t.Context(), x); err != nil || len(produced.Topics) != 1 || produced.Topics[0].Partitions[0].ErrorCode != kerr.UnknownTopicID.Code {
		t.Fatalf("%+v %v", produced.Topics, err)
	}
	fetch, fetched := kmsg.NewPtrFetchRequest(), kmsg.NewPtrFetchResponse()
	for _, id := range [][16]byte{known, unknown} {
		fetch.Topics = append(fetch.Topics, kmsg.FetchRequestTopic{TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{{}}})
		fetched.Topics = append(fetched.Topics, kmsg.FetchResponseTopic{TopicID: id, Partitions: []kmsg.FetchResponseTopicPartition{{RecordBatches: bytes.Clone(encrypted)}}})
	}
	x = held(t, &flow.Exchange{Conn: x.Conn, Key: fetchKey, Version: 13, Request: fetch, Response: fetched})
	if err := errors.Join(h.Request(t.Context(), x), h.Response(t.Context(), x)); err != nil {
		t.Fatal(err)
	}
	if p := fetched.Topics[0].Partitions[0]; p.ErrorCode != 0 || !bytes.Contains(p.RecordBatches, []byte("canary")) {
		t.Errorf("known: %+v", p)
	}
	if p := fetched.Topics[1].Partitions[0]; p.ErrorCode != kerr.UnknownTopicID.Code || len(p.RecordBatches) != 0 {
		t.Errorf("unknown: %+v", p)
	}
}

// [CL-SDC-111]
func TestNoRequestBecomesLongerThanABrokerTakes(t *testing.T) {
	s := &scene{service: testservice.StartKeyService(t, policy)}
	h := s.handler(t, nil)
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks = 12, 1
	partitions := []kmsg.ProduceRequestTopicPartition{{Partition: 0, Records: batchOf(t, 0)}, {Partition: 1, Records: batchOf(t, 0)}}
	r.Topics = []kmsg.ProduceRequestTopic{{Topic: "large", Partitions: partitions}}
	x := held(t, &flow.Exchange{Conn: &flow.Conn{}, Version: 12, RequestSize: maxRequest - 100, Request: r}) // room for one envelope
	if err := h.Request(t.Context(), x); err != nil || len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 {
		t.Fatalf("%+v %v", r.Topics, err)
	}
	response := kmsg.NewPtrProduceResponse()
	x.Response = response
	if err := h.Response(t.Context(), x); err != nil || len(response.Topics) != 1 || response.Topics[0].Partitions[0].ErrorCode != kerr.MessageTooLarge.Code {
		t.Fatalf("%+v %v", response.Topics, err)
	}
}

// [CL-SDC-115]
func testSessionsAndShareGroups(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	c := client(t, address, kgo.MaxVersions(maxVersions()))
	if err := produce(t, c, &kgo.Record{Topic: "sessions", Value: []byte(canary)}); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[int32]int16{0: 0, 17: kerr.FetchSessionIDNotFound.Code} {
		r := kmsg.NewPtrFetchRequest()
		r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionID, r.SessionEpoch = 100, 0, 1<<20, session, session
		r.Topics = []kmsg.FetchRequestTopic{{Topic: "sessions", Partitions: []kmsg.FetchRequestTopicPartition{{PartitionMaxBytes: 1 << 20, CurrentLeaderEpoch: -1}}}}
		response, err := c.Broker(1).Request(t.Context(), r)
		got, ok := response.(*kmsg.FetchResponse)
		if err != nil || !ok || got.SessionID != 0 || got.ErrorCode != want {
			t.Errorf("session %d: %+v %v", session, got, err)
		}
	}
	response, err := c.Request(t.Context(), kmsg.NewPtrApiVersionsRequest())
	got, ok := response.(*kmsg.ApiVersionsResponse)
	if err != nil || !ok || len(got.ApiKeys) < 20 {
		t.Fatalf("%+v %v", got, err)
	}
	for _, api := range got.ApiKeys {
		if api.ApiKey == shareFetchKey || api.ApiKey == shareAcknowledgeKey {
			t.Errorf("API %d is offered", api.ApiKey)
		}
	}
}

// [CL-SDC-115] A client that asks all the same gets an error of Kafka's, and its connection goes on.
func TestShareGroupsAreRefused(t *testing.T) {
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, nil)
	for _, q := range []kmsg.Request{kmsg.NewPtrShareFetchRequest(), kmsg.NewPtrShareAcknowledgeRequest()} {
		for version := range q.MaxVersion() + 1 {
			x := held(t, &flow.Exchange{Conn: &flow.Conn{}, Key: q.Key(), Version: version})
			if err := h.Request(t.Context(), x); err != nil || !x.Answered() || x.Response.Key() != q.Key() {
				t.Fatalf("%+v %v", x.Response, err)
			}
			again := kmsg.ResponseForKey(q.Key())
			again.SetVersion(version)
			if err := again.ReadFrom(x.Response.AppendTo(nil)); err != nil {
				t.Fatal(err)
			}
			var code int16
			switch r := again.(type) {
			case *kmsg.ShareFetchResponse:
				code = r.ErrorCode
			case *kmsg.ShareAcknowledgeResponse:
				code = r.ErrorCode
			}
			if code != kerr.UnsupportedVersion.Code {
				t.Errorf("API %d version %d: code %d", q.Key(), version, code)
			}
		}
	}
}
