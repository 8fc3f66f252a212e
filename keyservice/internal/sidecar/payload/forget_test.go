// What is derived from a key goes with the key.

package payload

import (
	"bytes"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/decryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/recordbatch"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const endingPolicy = `version: 1
topics:
  - {topics: [brief, lasting, other], mode: encrypt}
grants:
  - {principals: ["spiffe://dev.cipherlane/producer"], actions: [encrypt, decrypt], topics: [brief], lease: {expires_in: 2s}}
  - {principals: ["spiffe://dev.cipherlane/producer"], actions: [encrypt, decrypt], topics: [lasting, other], lease: {expires_in: 1h}}
`

// [CL-ENV-034] The encrypting session and the ciphers of a key are let go at the end of its lease, when it leaves the cache and with the handler;
// those of other keys stay.
func TestWhatIsDerivedGoesWithItsKey(t *testing.T) {
	s := &scene{service: testservice.StartKeyService(t, endingPolicy)}
	var closed *Handler
	var lasting []byte
	t.Run("at the end of the lease", func(t *testing.T) {
		h := s.handler(t, nil)
		closed = h
		brief := written(t, h, "brief")
		lasting = written(t, h, "lasting")
		waitUntil(t, "the end of what was derived", func() bool { return !keepsCipher(t, h, "brief", brief) })
		if same, again := sameKey(t, brief, written(t, h, "brief")); !same || again {
			t.Errorf("the key is the same: %v; its session is: %v", same, again)
		}
		if same, again := sameKey(t, lasting, written(t, h, "lasting")); !same || !again || !keepsCipher(t, h, "lasting", lasting) {
			t.Errorf("of a key whose lease goes on, the key is the same: %v; its session is: %v", same, again)
		}
	})
	if closed != nil && keepsCipher(t, closed, "lasting", lasting) {
		t.Error("it outlives the handler")
	}
	t.Run("when the key leaves the cache", func(t *testing.T) {
		h := s.handler(t, func(o *Options) { o.Keys.Max = 1 })
		left := written(t, h, "lasting")
		stays := written(t, h, "other")
		if keepsCipher(t, h, "lasting", left) || !keepsCipher(t, h, "other", stays) {
			t.Error("not the one that left")
		}
		if _, again := sameKey(t, left, written(t, h, "lasting")); again {
			t.Error("its session goes on")
		}
	})
}

// written encrypts "canary" for a topic, reads it back, and gives the envelope.
func written(t *testing.T, h *Handler, topic string) (value []byte) {
	t.Helper()
	memory, err := h.requests.share(t.Context(), leastShare)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.end()
	p := producing{h, &flow.Exchange{}, memory, maxRequest}
	data, err := p.encrypt(t.Context(), topic, batchOf(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	f := fetching{h, &flow.Exchange{}, nil, memory, maxDelivered}
	need := needed{kids: map[datakey.ID]struct{}{}}
	part := f.takeApart(t.Context(), data, 0, &need)
	for r, err := range recordbatch.All(part.batches[0].records, 1) {
		if err != nil {
			t.Fatal(err)
		}
		value = bytes.Clone(r.Value)
	}
	readable := h.cache.Decryption(t.Context(), topic, need.list(), false)
	defer readable.Wipe()
	if read, err := f.reader(readable).read(part); err != nil || !bytes.Contains(read, []byte("canary")) {
		t.Fatalf("%q %v", read, err)
	}
	return value
}

// keepsCipher tells whether a value of a topic can be read without its key: who has no cipher yet makes one from the other key that is given here.
func keepsCipher(t *testing.T, h *Handler, topic string, value []byte) bool {
	t.Helper()
	another := func(datakey.ID) (string, *datakey.Key, error) { return topic, datakey.Generate(), nil }
	r := decryptor.Reader{Keys: another, Ciphers: h.ciphers, MaxPlaintext: DefaultMaxPlaintext}
	_, err := r.Read(value, decryptor.RecordKey{})
	return err == nil
}

func parsed(t *testing.T, value []byte) *envelope.Envelope {
	t.Helper()
	e, err := envelope.Parse(value)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// sameKey tells whether two values have the same key, and the same session.
func sameKey(t *testing.T, a, b []byte) (key, session bool) {
	t.Helper()
	one, two := parsed(t, a), parsed(t, b)
	return one.Kid == two.Kid, bytes.Equal(one.Nonce[:envelope.SessionSize], two.Nonce[:envelope.SessionSize])
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain for: %s", what)
}
