package payload

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
)

const canary = "canary: nobody but the two ends may read this"

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// One broker for all: it takes its time to start.
func TestPayload(t *testing.T) {
	topics := []string{"clear", "forbidden", "mixed", "txn", "bound", "bad", "bad2", "bad3", "middle", "large", "old", "usage", "control", "sessions"}
	for name := range codecs {
		topics = append(topics, "codec-"+name)
	}
	s := set(t, strings.Join(topics, ":1,")+":1")
	for name, test := range map[string]func(*testing.T, *scene){
		"codecs": testCodecs, "transactions": testTransactions, "modes": testModes, "bound record keys": testBoundKeys,
		"failure actions": testFailureActions, "from the middle of a batch": testMiddle, "too large": testTooLarge,
		"refused batches": testRefusedBatches, "usage": testUsage, "no acknowledgement": testNoAcknowledgement,
		"sessions and share groups": testSessionsAndShareGroups,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	scanSegments(t, s.broker.LogDir)
	if strings.Contains(s.service.Log.String(), "canary") {
		t.Error("the key service's log holds a value")
	}
}

// scanSegments looks for plaintext on the broker's disk. The topic clear shows that it would be found.
func scanSegments(t *testing.T, dir string) {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("canary")) {
			found[filepath.Base(filepath.Dir(path))] = true
		}
		return err
	})
	if err != nil || len(found) != 1 || !found["clear-0"] {
		t.Errorf("plaintext in %v, want it in clear-0 only; %v", found, err)
	}
}

// [CL-SDC-100] [CL-SDC-101]
func testCodecs(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	for name, codec := range codecs {
		topic := "codec-" + name
		c := client(t, address, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond))
		sent := []*kgo.Record{
			{Topic: topic, Key: []byte("k"), Value: []byte(canary), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("v")}, {Key: "n"}}, Timestamp: time.UnixMilli(1700000000123)},
			{Topic: topic, Value: nil},
			{Topic: topic, Key: []byte{}, Value: []byte{}},
			{Topic: topic, Value: []byte(strings.Repeat(canary, 1000))},
		}
		if err := produce(t, c, sent...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		stored, err := consume(t, s.broker.Bootstrap, topic, 0, len(sent))
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range stored {
			if sent[i].Value == nil != (r.Value == nil) || r.Value != nil && (!envelope.Is(r.Value) || len(r.Value) != len(sent[i].Value)+envelope.MinSize) {
				t.Errorf("%s: record %d is stored as %d bytes", name, i, len(r.Value))
			}
			if got, want := r.Attrs.CompressionType(), stored[0].Attrs.CompressionType(); got != want {
				t.Errorf("%s: codec %d, and %d", name, got, want)
			}
		}
		read, err := consume(t, address, topic, 0, len(sent))
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range read {
			same(t, name, r, sent[i])
		}
	}
}

func same(t *testing.T, name string, got, want *kgo.Record) {
	t.Helper()
	if !bytes.Equal(got.Value, want.Value) || (got.Value == nil) != (want.Value == nil) || !bytes.Equal(got.Key, want.Key) || (got.Key == nil) != (want.Key == nil) ||
		fmt.Sprint(got.Headers) != fmt.Sprint(want.Headers) || got.Timestamp.UnixMilli() != want.Timestamp.UnixMilli() {
		t.Errorf("%s: offset %d: %.100v, want %.100v", name, got.Offset, got, want)
	}
}

// [CL-SDC-103]
func testTransactions(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	c := client(t, address, kgo.TransactionalID("payload"))
	for i, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := produce(t, c, &kgo.Record{Topic: "txn", Value: fmt.Appendf(nil, "%s %d", canary, i)}); err != nil {
			t.Fatal(err)
		}
		if err := c.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	read, err := consume(t, address, "txn", 0, 2, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil || len(read) != 2 || !bytes.HasSuffix(read[0].Value, []byte("0")) || !bytes.HasSuffix(read[1].Value, []byte("2")) {
		t.Fatalf("%v %v", read, err)
	}
	if all, err := consume(t, address, "txn", 0, 3); err != nil || len(all) != 3 {
		t.Fatalf("%v %v", all, err)
	}
}

// [CL-SDC-102]
func testModes(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	c := client(t, address)
	if err := produce(t, c, &kgo.Record{Topic: "clear", Value: []byte(canary)}); err != nil {
		t.Error(err)
	}
	if err := produce(t, c, &kgo.Record{Topic: "clear", Value: []byte{0xc1, 0x9e, 1}}); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("what readers would take for an envelope: %v", err)
	}
	for _, value := range [][]byte{[]byte(canary), nil} {
		if err := produce(t, c, &kgo.Record{Topic: "forbidden", Value: value}); !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("forbidden: %v", err)
		}
	}
	direct := client(t, s.broker.Bootstrap)
	plain := &kgo.Record{Topic: "mixed", Value: []byte("accepted")}
	if err := produce(t, direct, plain); err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]string{"mixed": "accepted", "clear": canary} {
		if read, err := consume(t, address, topic, 0, 1); err != nil || string(read[0].Value) != want {
			t.Errorf("%s: %v %v", topic, read, err)
		}
	}
}

func testBoundKeys(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	c := client(t, address)
	sent := []*kgo.Record{{Topic: "bound", Key: []byte("k"), Value: []byte(canary)}, {Topic: "bound", Value: []byte(canary)}}
	if err := produce(t, c, sent...); err != nil {
		t.Fatal(err)
	}
	stored, err := consume(t, s.broker.Bootstrap, "bound", 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	// The same value beside another key.
	if err := produce(t, client(t, s.broker.Bootstrap), &kgo.Record{Topic: "bound", Key: []byte("other"), Value: stored[0].Value}); err != nil {
		t.Fatal(err)
	}
	read, err := consume(t, address, "bound", 0, 3)
	if len(read) != 2 || !errors.Is(err, kerr.CorruptMessage) {
		t.Errorf("%d records, %v", len(read), err)
	}
	for i := range read {
		same(t, "bound", read[i], sent[i])
	}
}

// [CL-SDC-107] [CL-SDC-108] [CL-SDC-109]
func testFailureActions(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	good := func(topic, value string) *kgo.Record { return &kgo.Record{Topic: topic, Value: []byte(value)} }
	if err := produce(t, client(t, address), good("bad", "one"), good("bad", "two"), good("bad", "five")); err != nil {
		t.Fatal(err)
	}
	stored, err := consume(t, s.broker.Bootstrap, "bad", 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	broken := bytes.Clone(stored[1].Value)
	broken[len(broken)-1] ^= 1
	lied := kgo.RecordHeader{Key: errorHeader, Value: []byte("a lie")}
	direct := client(t, s.broker.Bootstrap, kgo.ProducerLinger(100*time.Millisecond))
	// In one batch: good, broken, good, injected, good.
	for _, topic := range []string{"bad2", "bad3"} {
		batch := []*kgo.Record{
			{Topic: topic, Value: stored[0].Value, Headers: []kgo.RecordHeader{lied}},
			{Topic: topic, Value: broken, Headers: []kgo.RecordHeader{lied}},
			{Topic: topic, Value: stored[1].Value},
		}
		if topic == "bad3" {
			batch = append(batch, &kgo.Record{Topic: topic, Value: []byte("injected")})
		}
		if err := produce(t, direct, append(batch, &kgo.Record{Topic: topic, Value: stored[2].Value})...); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		action Action
		topic  string
		from   int64
		want   string // offset and value, or header, of each record
		fails  bool
	}{
		{Fail, "bad2", 0, "0 one", true},
		{Fail, "bad2", 1, "", true},
		{Fail, "bad2", 2, "2 two, 3 five", false},
		{Skip, "bad3", 0, "0 one, 2 two, 4 five", false},
		{Mark, "bad2", 0, "0 one, 1 [authentication-failed], 2 two, 3 five", false},
		{Mark, "bad3", 0, "0 one, 1 [authentication-failed], 2 two", true},
	} {
		address, _ := s.sidecar(t, func(o *Options) { o.Action = c.action })
		count := strings.Count(c.want, ",") + 1
		if c.fails {
			count = 100
		}
		read, err := consume(t, address, c.topic, c.from, count)
		var got []string
		for _, r := range read {
			text := string(r.Value)
			if len(r.Headers) > 0 && c.action == Mark {
				text = fmt.Sprintf("[%s]", r.Headers[len(r.Headers)-1].Value)
			}
			got = append(got, fmt.Sprintf("%d %s", r.Offset, text))
		}
		if strings.Join(got, ", ") != c.want || errors.Is(err, kerr.CorruptMessage) != c.fails {
			t.Errorf("%s of %s from %d: %v %v, want %s", c.action, c.topic, c.from, got, err, c.want)
		}
	}
}

// [CL-SDC-110]
func testMiddle(t *testing.T, s *scene) {
	t.Helper()
	address, _ := s.sidecar(t, nil)
	c := client(t, address, kgo.ProducerLinger(100*time.Millisecond))
	var sent []*kgo.Record
	for i := range 100 {
		sent = append(sent, &kgo.Record{Topic: "middle", Value: fmt.Appendf(nil, "%s %d", canary, i)})
	}
	if err := produce(t, c, sent...); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 1, 57, 99} {
		read, err := consume(t, address, "middle", from, 100-int(from), kgo.FetchMaxPartitionBytes(300))
		if err != nil || len(read) != 100-int(from) || read[0].Offset != from || !bytes.Equal(read[0].Value, sent[from].Value) {
			t.Errorf("from %d: %d records, %v", from, len(read), err)
		}
	}
}
