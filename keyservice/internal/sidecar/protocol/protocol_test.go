package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// [CL-SDC-010] Clients are told of what is understood, and of nothing that brokers use among themselves.
func TestClamp(t *testing.T) {
	r := kmsg.NewPtrApiVersionsResponse()
	for key := range int16(200) {
		api := kmsg.NewApiVersionsResponseApiKey()
		api.ApiKey, api.MinVersion, api.MaxVersion = key, 0, 99
		r.ApiKeys = append(r.ApiKeys, api)
	}
	if !Clamp(r) {
		t.Fatal("nothing changed")
	}
	for _, api := range r.ApiKeys {
		if !Understood(api.ApiKey, api.MinVersion) || !Understood(api.ApiKey, api.MaxVersion) || Understood(api.ApiKey, api.MaxVersion+1) {
			t.Errorf("%+v", api)
		}
		if api.ApiKey == 27 || api.ApiKey == 58 {
			t.Errorf("%d is for brokers only", api.ApiKey)
		}
	}
	if Clamp(r) {
		t.Error("changed again")
	}
}

// [CL-SDC-013] What is not understood is refused, with an error that says what it was.
func TestRefusedHeaders(t *testing.T) {
	good := kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")).AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 7)[4:]
	h, err := ParseHeader(good)
	if err != nil || h.Key != 3 || h.CorrelationID != 7 || *h.ClientID != "c" {
		t.Fatal(h, err)
	}
	change := func(at int, b ...byte) []byte {
		p := bytes.Clone(good)
		copy(p[at:], b)
		return p
	}
	for name, bad := range map[string]struct {
		p    []byte
		want error
	}{
		"an unknown API":          {change(0, 0x7f, 0xff), ErrUnknownAPI},
		"an API of brokers":       {change(0, 0, 4), ErrUnknownAPI},
		"an unknown version":      {change(2, 0x7f, 0xff), ErrUnknownAPI},
		"a negative version":      {change(2, 0xff, 0xff), ErrUnknownAPI},
		"SaslHandshake 0":         {change(0, 0, 17, 0, 0), ErrUnknownAPI},
		"ApiVersions yet to come": {change(0, 0, 18, 0x7f, 0xff), ErrNewer},
		"ApiVersions -1":          {change(0, 0, 18, 0xff, 0xff), ErrUnknownAPI},
		"nothing":                 {nil, ErrCut},
		"half a header":           {good[:7], ErrCut},
		"a client id of 32 KiB":   {change(8, 0x7f, 0xff), ErrCut},
		"endless tagged fields":   {append(append(change(2, 0, 9)[:8:8], 0xff, 0xff), 0xff, 0xff, 0xff, 0xff, 7), ErrCut},
		"a tagged field too long": {append(append(change(2, 0, 9)[:8:8], 0xff, 0xff), 1, 0, 0xff, 0xff, 3), ErrCut},
	} {
		if _, err := ParseHeader(bad.p); !errors.Is(err, bad.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExpectsResponse(t *testing.T) {
	for version := range int16(14) {
		for _, acks := range []int16{-1, 0, 1} {
			r := kmsg.NewPtrProduceRequest()
			r.Acks, r.TransactionID = acks, new("id")
			r.SetVersion(version)
			body := r.AppendTo(nil)
			h := Header{Key: 0, Version: version}
			if got, err := ExpectsResponse(h, body); err != nil || got != (acks != 0) {
				t.Errorf("version %d, acks %d: %v, %v", version, acks, got, err)
			}
			if _, err := ExpectsResponse(h, nil); err == nil {
				t.Error("nothing was taken")
			}
		}
	}
}

// every gives messages with records in all versions.
func every(do func(key, version int16, p []byte, request bool)) {
	for version := range int16(14) {
		r := kmsg.NewPtrProduceRequest()
		topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		partition.Records = []byte("records")
		topic.Topic, topic.Partitions = "claims", append(topic.Partitions, partition, partition)
		r.Topics = append(r.Topics, topic)
		r.SetVersion(version)
		do(0, version, r.AppendTo(nil), true)
	}
	for version := range int16(19) {
		r := kmsg.NewPtrFetchResponse()
		topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		partition.RecordBatches = []byte("records")
		partition.AbortedTransactions = append(partition.AbortedTransactions, kmsg.NewFetchResponseTopicPartitionAbortedTransaction())
		topic.Topic, topic.Partitions = "claims", append(topic.Partitions, partition, partition)
		r.Topics = append(r.Topics, topic)
		r.SetVersion(version)
		do(1, version, r.AppendTo(nil), false)
	}
	for version := range int16(3) {
		r := kmsg.NewPtrShareFetchResponse()
		topic, partition := kmsg.NewShareFetchResponseTopic(), kmsg.NewShareFetchResponseTopicPartition()
		partition.Records = []byte("records")
		partition.AcquiredRecords = append(partition.AcquiredRecords, kmsg.NewShareFetchResponseTopicPartitionAcquiredRecord())
		topic.Partitions = append(topic.Partitions, partition)
		r.Topics = append(r.Topics, topic)
		r.SetVersion(version)
		do(78, version, r.AppendTo(nil), false)
	}
}

// [CL-SDC-014] The shape of messages with records is checked in every version, and each cut of them is refused.
func TestShape(t *testing.T) {
	every(func(key, version int16, p []byte, request bool) {
		if err := checkShape(key, version, p, request); err != nil {
			t.Errorf("API %d version %d: %v", key, version, err)
		}
		end := bytes.Index(p, []byte("records"))
		for cut := range end {
			if checkShape(key, version, p[:cut], request) == nil {
				t.Errorf("API %d version %d: %d of %d bytes were taken", key, version, cut, len(p))
			}
		}
	})
}

// [CL-SDC-014] An array that claims more elements than there are allocates nothing.
func TestClaimedElements(t *testing.T) {
	r := kmsg.NewPtrProduceRequest()
	r.SetVersion(8)
	p := r.AppendTo(nil)
	p = append(p[:len(p)-4], 0, 0x0f, 0xff, 0xff)
	p = append(p, make([]byte, 2<<20)...)
	if _, err := DecodeRequest(Header{Key: 0, Version: 8}, p); !errors.Is(err, ErrShape) {
		t.Fatal(err)
	}
	big := make([]byte, maxRequestBody+1)
	if _, err := DecodeRequest(Header{Key: 3, Version: 8}, big); err == nil || !strings.Contains(err.Error(), "more than the") {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(big, 1<<30)
	if _, err := DecodeRequest(Header{Key: 3, Version: 8}, big[:100]); err == nil {
		t.Fatal("a claimed array was taken")
	}
}

func TestAnswers(t *testing.T) {
	for key, highest := range Versions() {
		for version := lowest[key]; version <= highest; version++ {
			r := kmsg.ResponseForKey(key)
			r.SetVersion(version)
			frame := AppendAnswer(nil, 9, r)
			if size := int(binary.BigEndian.Uint32(frame)); size != len(frame)-4 {
				t.Fatal(size, len(frame))
			}
			decoded, header, err := DecodeResponse(key, version, frame[4:])
			if err != nil || int32At(frame, 4) != 9 {
				t.Fatalf("API %d version %d: %v", key, version, err)
			}
			if again := AppendResponse(nil, frame[4:4+header], decoded); !bytes.Equal(frame, again) {
				t.Errorf("API %d version %d: encoded differently", key, version)
			}
		}
	}
}

// [CL-SDC-014] The layout of every message that is understood is known, and a count of tagged fields that are not there is refused at
// once, wherever it stands: kmsg would count for many seconds.
func TestLayouts(t *testing.T) {
	for key, highest := range Versions() {
		for version := lowest[key]; version <= highest; version++ {
			for _, request := range []bool{true, false} {
				fields, err := layoutOf(key, version, request)
				if err != nil {
					t.Error(err)
				}
				if !isFlexible(key, version) {
					continue
				}
				c := &cursor{flexible: true}
				var m message = kmsg.ResponseForKey(key)
				if request {
					m = kmsg.RequestForKey(key)
				}
				m.SetVersion(version)
				p := m.AppendTo(nil)
				c.rest = slices.Concat(p[:len(p)-1], []byte{0xff, 0xff, 0xff, 0xff, 0x07})
				c.walk(fields)
				if !c.bad {
					t.Errorf("API %d version %d: endless tagged fields were taken", key, version)
				}
			}
		}
	}
}

// TestTagged tells responses with an address in a tagged field from those without any, in every version that has tagged fields.
func TestTagged(t *testing.T) {
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.Fetch} {
		for version := range Versions()[key.Int16()] + 1 {
			if !isFlexible(key.Int16(), version) {
				continue
			}
			r := kmsg.ResponseForKey(key.Int16())
			r.SetVersion(version)
			expect := func(expected bool) {
				t.Helper()
				p := AppendResponse(nil, []byte{0, 0, 0, 1, 0}, r)[4:]
				if got, err := Tagged(key.Int16(), version, p); err != nil || got != expected {
					t.Errorf("%s %d: %t, %v; expected %t", key.Name(), version, got, err, expected)
				}
				if _, err := Tagged(key.Int16(), version, p[:len(p)-1]); err == nil {
					t.Errorf("%s %d: a cut one is taken", key.Name(), version)
				}
				if got, err := Tagged(key.Int16(), version, append(p, 0)); err != nil || !got {
					t.Errorf("%s %d: a byte too many is of no account: %v", key.Name(), version, err)
				}
			}
			expect(false)
			switch r := r.(type) {
			case *kmsg.ProduceResponse:
				r.Brokers = append(r.Brokers, kmsg.NewProduceResponseBroker())
				expect(true)
			case *kmsg.FetchResponse:
				r.Brokers = append(r.Brokers, kmsg.NewFetchResponseBroker())
				expect(true)
			}
		}
	}
}
