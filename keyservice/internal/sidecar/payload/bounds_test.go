// Records that become much longer here than they were on their way.

package payload

import (
	"bytes"
	"crypto/rand"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/recordbatch"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const (
	mebibyte  = 1 << 20
	zstdCodec = 4 // of a batch's attributes
)

// bomb gives a batch with these values, compressed with zstd.
func bomb(t *testing.T, values ...[]byte) []byte {
	t.Helper()
	return batchWith(t, zstdCodec, values...)
}

func batchWith(t *testing.T, codec int16, values ...[]byte) []byte {
	t.Helper()
	var records []byte
	for i, value := range values {
		records = append(records, raw(int32(i), value)...)
	}
	template, _, err := recordbatch.Next(batchOf(t, codec))
	if err != nil {
		t.Fatal(err)
	}
	data, err := template.Append(nil, records, int32(len(values)), int32(len(values)-1))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// raw gives a record as it stands in a batch.
func raw(offset int32, value []byte) []byte {
	r := kmsg.Record{OffsetDelta: offset, Value: value}
	r.Length = int32(len(r.AppendTo(nil)) - 1) // one byte for a length of 0
	return r.AppendTo(nil)
}

// squeezed gives the envelope, for the topic "claims", of a plaintext that was compressed before it was encrypted, as SDKs do.
func squeezed(t *testing.T, h *Handler, plaintext []byte) []byte {
	t.Helper()
	grant, err := h.cache.Encryption(t.Context(), "claims")
	if err != nil {
		t.Fatal(err)
	}
	defer grant.Key.Wipe()
	nonce := make([]byte, envelope.NonceSize)
	_, _ = rand.Read(nonce)
	aead, err := grant.Key.Derive([datakey.PrefixSize]byte(nonce))
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	header := envelope.NewHeader(grant.Kid, false)
	header[3] |= 1 // zstd
	value := append(header[:], nonce...)
	return aead.Seal(value, nonce[datakey.PrefixSize:], encoder.EncodeAll(plaintext, nil), envelope.AppendAAD(nil, header[:], grant.Scope, nil))
}

// fetch takes a response with these batches of each topic to a client that reads from an offset, and gives how many records of each are delivered.
func fetch(t *testing.T, h *Handler, from int64, topics map[string][]byte) map[string]int {
	t.Helper()
	q, r := kmsg.NewPtrFetchRequest(), kmsg.NewPtrFetchResponse()
	for topic, batches := range topics {
		q.Topics = append(q.Topics, kmsg.FetchRequestTopic{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{{FetchOffset: from}}})
		r.Topics = append(r.Topics, kmsg.FetchResponseTopic{Topic: topic, Partitions: []kmsg.FetchResponseTopicPartition{{RecordBatches: batches}}})
	}
	size := 0
	for _, batches := range topics {
		size += len(batches)
	}
	x := &flow.Exchange{Conn: &flow.Conn{}, Key: fetchKey, Version: 12, Request: q, Response: r, ResponseSize: size}
	var held flow.Holds
	defer held.GiveBack()
	x.HoldIn(&held)
	if err := errors.Join(h.Request(t.Context(), x), h.Response(t.Context(), x)); err != nil {
		t.Fatal(err)
	}
	delivered := map[string]int{}
	for _, topic := range r.Topics {
		p := topic.Partitions[0]
		if p.ErrorCode != 0 {
			t.Errorf("%s: %v", topic.Topic, kerr.ErrorForCode(p.ErrorCode))
		}
		for data := p.RecordBatches; len(data) > 0; {
			batch, rest, err := recordbatch.Next(data)
			if err != nil {
				t.Fatal(err)
			}
			delivered[topic.Topic] += int(batch.Count())
			data = rest
		}
	}
	return delivered
}

// [CL-SDC-030] A few kilobytes of batches that decompress to much are taken a part at a time, of each topic; small ones are not held back.
func TestBatchesThatDecompressToMuch(t *testing.T) {
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, nil)
	const many, each = 12, 16 * mebibyte
	all, small := bytes.Repeat(bomb(t, make([]byte, each)), many), bytes.Repeat(bomb(t, make([]byte, 100)), many)
	got := fetch(t, h, 0, map[string][]byte{"clear": all, "mixed": small})
	if got["clear"] != maxHeld/each || got["mixed"] != many {
		t.Errorf("%v are delivered", got)
	}
}

// [CL-SDC-030] [CL-SDC-106] Values that decompress to much when they are decrypted end the batch early, and the client reads on from there: it gets all of them.
func TestValuesThatDecompressToMuch(t *testing.T) {
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, nil)
	const many, each = 7, 20 * mebibyte
	values := make([][]byte, many)
	for i := range values {
		values[i] = squeezed(t, h, make([]byte, each))
	}
	batch := bomb(t, values...)
	var got []int
	for from := 0; from < many; from += got[len(got)-1] {
		got = append(got, fetch(t, h, int64(from), map[string][]byte{"claims": bytes.Repeat(batch, 2)})["claims"])
		if got[len(got)-1] == 0 {
			t.Fatal("nothing comes any more")
		}
	}
	if !slices.Equal(got, []int{3, 3, 2}) { // the batch behind waits until all of the first is read
		t.Errorf("%v are delivered", got)
	}
}

// [CL-SDC-030] However many clients at once ask for records that become much, the memory is that of one of them.
func TestManyThatDecompressToMuch(t *testing.T) {
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, nil)
	bombs := map[string][]byte{
		"clear":  bytes.Repeat(bomb(t, make([]byte, 30*mebibyte)), 2),
		"claims": bomb(t, squeezed(t, h, make([]byte, 60*mebibyte))),
	}
	allAtOnce(t, func(i int) {
		topic := []string{"clear", "claims"}[i%2]
		if got := fetch(t, h, 0, map[string][]byte{topic: bombs[topic]})[topic]; got != 2-i%2 {
			t.Errorf("%d records of %s", got, topic)
		}
	})
	h.responses.whole(t)
}

// [CL-SDC-030] The same of many who produce, each of whom gets through.
func TestManyRequestsThatDecompressToMuch(t *testing.T) {
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, nil)
	records := bomb(t, make([]byte, 40*mebibyte))
	allAtOnce(t, func(int) {
		x := requestOf(records)
		var held flow.Holds
		defer held.GiveBack()
		x.HoldIn(&held)
		if err := h.Request(t.Context(), x); err != nil || x.Answered() {
			t.Error(err, x.Response)
		}
	})
	h.requests.whole(t)
}

// requestOf gives a request that produces these batches for the topic "claims".
func requestOf(batches []byte) *flow.Exchange {
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks = 12, 1
	q.Topics = []kmsg.ProduceRequestTopic{{Topic: "claims", Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batches}}}}
	return &flow.Exchange{Conn: &flow.Conn{}, Version: 12, RequestSize: len(batches), Request: q}
}

// allAtOnce does something ten times side by side, and fails if that takes as much memory as more than some of them need.
func allAtOnce(t *testing.T, do func(i int)) {
	t.Helper()
	peak := peakOfHeap(t)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { do(i) })
	}
	all.Wait()
	most := peak()
	t.Logf("%d MiB", most/mebibyte)
	if most > 500*mebibyte {
		t.Errorf("%d MiB", most/mebibyte)
	}
}

// peakOfHeap gives the most that is in use from now on, until what it gives is called.
func peakOfHeap(t *testing.T) func() uint64 {
	t.Helper()
	before := debug.SetGCPercent(10)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
			select {
			case <-stop:
				most <- peak
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-most
	}
}

// [CL-SDC-030] The same where the batches themselves are not compressed: a response is not made longer than a request may be, but for its last batch.
func TestResponsesThatBecomeLong(t *testing.T) {
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, nil)
	const many, each = 6, 40 * mebibyte
	all := bytes.Repeat(batchWith(t, 0, squeezed(t, h, make([]byte, each))), many)
	if got := fetch(t, h, 0, map[string][]byte{"claims": all})["claims"]; got != maxDelivered/each+1 {
		t.Errorf("%d are delivered", got)
	}
}

// [CL-SDC-030] [CL-SDC-111] A request is refused as soon as it has become too long, whatever it would still decompress to.
func TestRequestsThatDecompressToMuch(t *testing.T) {
	figures := prometheus.NewRegistry()
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, func(o *Options) { o.Metrics = figures })
	const many, each = 20, 16 * mebibyte
	all := bytes.Repeat(bomb(t, make([]byte, each)), many)
	x := held(t, requestOf(all))
	if err := h.Request(t.Context(), x); err != nil || !x.Answered() {
		t.Fatal(err)
	}
	r, ok := x.Response.(*kmsg.ProduceResponse)
	if !ok || r.Topics[0].Partitions[0].ErrorCode != kerr.MessageTooLarge.Code {
		t.Errorf("%+v", x.Response)
	}
	if n := encrypted(t, figures); n < 1 || n > maxRequest/each+1 {
		t.Errorf("%v records were encrypted", n)
	}
}

// [CL-SDC-030] [CL-ENV-034] Who waits until another one is done holds no keys meanwhile, and reads from the beginning what it has read in part; it is
// counted once. Who takes no more than its share does not wait.
func TestReadingWaitsForMemory(t *testing.T) {
	figures := prometheus.NewRegistry()
	h := (&scene{service: testservice.StartKeyService(t, policy)}).handler(t, func(o *Options) { o.Metrics = figures })
	another := shareOf(t, h.responses, 0)
	if waits(t, takes(another, 1)) {
		t.Fatal("nobody else is there")
	}
	small, large := squeezed(t, h, []byte("small")), squeezed(t, h, make([]byte, 20*mebibyte))
	done := make(chan map[string]int)
	go func() {
		done <- fetch(t, h, 0, map[string][]byte{"claims": batchWith(t, 0, small, small, large, small, large)})
	}()
	waitUntil(t, "it waits", func() bool { return h.responses.waits.Load() == 1 })
	before := counted(t, figures, "records_decrypted_total")
	if before != 0 {
		t.Errorf("%v are counted before they are read", before)
	}
	if got := fetch(t, h, 0, map[string][]byte{"claims": batchWith(t, 0, small)}); got["claims"] != 1 {
		t.Error("a small one waits")
	}
	select {
	case <-done:
		t.Error("two take more than their share")
	default:
	}
	another.end()
	if got := <-done; got["claims"] != 5 {
		t.Errorf("%v are delivered", got)
	}
	if after := counted(t, figures, "records_decrypted_total"); after != 1+5 {
		t.Errorf("%v are counted", after)
	}
	h.responses.whole(t)
}

func encrypted(t *testing.T, figures *prometheus.Registry) float64 {
	t.Helper()
	return counted(t, figures, "records_encrypted_total")
}

// counted gives a figure.
func counted(t *testing.T, figures *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := figures.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == prefix+name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("it is not counted")
	return 0
}
