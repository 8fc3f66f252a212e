// Package encryptor encrypts record values (spec/envelope.md, "Writing"): the mode of a topic, encrypting sessions, usage. Keys come
// from internal/keys; it knows nothing of Kafka.
package encryptor

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Codes of spec/errors.md.
const (
	AmbiguousPlaintext refusal.Code = "ambiguous-plaintext"
	PlaintextTooLong   refusal.Code = "plaintext-too-long"
)

const (
	sessionRecords = 1<<32 - 1        // [CL-ENV-032]
	sessionLife    = 15 * time.Minute // [CL-ENV-033]
)

// Overhead is what an envelope is longer than its plaintext, in bytes.
const Overhead = envelope.MinSize

// Encryptor is safe for concurrent use.
type Encryptor struct {
	keys         *keys.Cache
	maxPlaintext int

	mu       sync.Mutex
	sessions map[datakey.ID]*session // one for each key in use
}

// session is an encrypting session. Its counter belongs to the encryptor's lock.
type session struct {
	scope  string
	aead   cipher.AEAD
	random [envelope.SessionSize]byte
	began  time.Duration
	next   uint64 // counter of the next record
}

// New makes an encryptor of plaintext of at most maxPlaintext bytes. Forget must be told when keys end.
func New(cache *keys.Cache, maxPlaintext int) *Encryptor {
	return &Encryptor{keys: cache, maxPlaintext: maxPlaintext, sessions: map[datakey.ID]*session{}}
}

// Forget lets the session of a key go: its lease ended [CL-ENV-034].
func (e *Encryptor) Forget(kid datakey.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sessions, kid)
}

// Writer writes a number of records to a topic, from one goroutine.
type Writer struct {
	Mode keyclient.Mode // Encrypt or Clear

	of      *Encryptor
	topic   string
	kid     datakey.ID
	scope   string
	header  [envelope.HeaderSize]byte
	bind    bool
	aad     []byte
	aead    cipher.AEAD
	nonce   [datakey.NonceSize]byte
	next    uint32
	left    int
	records int64
	bytes   int64
}

// Writer begins writing count records. bind says whether their keys are bound.
//
// Errors: *refusal.Error: what the key service says of the topic, topic-forbidden, or why there is no key.
func (e *Encryptor) Writer(ctx context.Context, topic string, count int, bind bool) (*Writer, error) {
	grant, err := e.keys.Encryption(ctx, topic)
	if err != nil {
		return nil, err
	}
	w := &Writer{Mode: grant.Mode, of: e, topic: topic, kid: grant.Kid, scope: grant.Scope, bind: bind, left: count}
	switch grant.Mode {
	case keyclient.Forbid:
		return nil, refusal.New(refusal.TopicForbidden, "the policy forbids topic %s", topic)
	case keyclient.Clear:
		return w, nil
	case keyclient.Encrypt:
	}
	defer grant.Key.Wipe()
	w.header = envelope.NewHeader(grant.Kid, bind)
	w.aad = envelope.AppendAAD(nil, w.header[:], grant.Scope, nil)
	return w, e.begin(w, grant.Key)
}

// begin takes count numbers of the key's session, or of a new one [CL-ENV-031].
func (e *Encryptor) begin(w *Writer, key *datakey.Key) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, s := keys.Now(), e.sessions[w.kid]
	if s == nil || s.scope != w.scope || s.next+uint64(w.left) > sessionRecords || now-s.began >= sessionLife { // #nosec G115 -- a count
		var err error
		if s, err = newSession(w.scope, key, now); err != nil {
			return err
		}
		if key.Held() { // else Forget has been told already
			e.sessions[w.kid] = s
		}
	}
	w.aead, w.next = s.aead, uint32(s.next) // #nosec G115 -- checked above
	copy(w.nonce[:], s.random[:])
	s.next += uint64(w.left) // #nosec G115 -- a count
	return nil
}

func newSession(scope string, key *datakey.Key, now time.Duration) (*session, error) {
	s := &session{scope: scope, began: now}
	if _, err := rand.Read(s.random[:]); err != nil { // [CL-ENV-030]
		return nil, refusal.Because(refusal.Internal, err, "the random source failed")
	}
	var err error
	s.aead, err = key.Derive([datakey.PrefixSize]byte(s.random[:]))
	return s, err
}

// Check refuses a value that must not be written, before anything of it is [CL-ENV-041] [CL-ENV-042].
func (w *Writer) Check(value []byte) error {
	switch {
	case len(value) > w.of.maxPlaintext:
		return refusal.New(PlaintextTooLong, "a value of %d bytes; at most %d are taken", len(value), w.of.maxPlaintext)
	case w.Mode == keyclient.Clear && envelope.Is(value):
		return refusal.New(AmbiguousPlaintext, "a value for the clear topic %s starts as an envelope does: encrypt the topic", w.topic)
	}
	return nil
}

// Append appends the envelope of a value that is not null and was checked. recordKey is nil for a null key.
func (w *Writer) Append(dst, value, recordKey []byte) ([]byte, error) {
	if w.left == 0 {
		return nil, refusal.New(refusal.Internal, "more records than were announced")
	}
	w.left--
	binary.BigEndian.PutUint32(w.nonce[envelope.SessionSize:], w.next)
	w.next++
	aad := w.aad
	if w.bind {
		w.aad = envelope.AppendAAD(w.aad[:0], w.header[:], w.scope, recordKey)
		aad = w.aad
	}
	w.records++
	w.bytes += int64(len(value))
	dst = append(append(dst, w.header[:]...), w.nonce[:]...)
	return w.aead.Seal(dst, w.nonce[datakey.PrefixSize:], value, aad), nil
}

// Done reports what was written, which is then on its way, and gives the number of records.
func (w *Writer) Done() int64 {
	if w.records > 0 {
		w.of.keys.Encrypted(w.topic, w.kid, w.records, w.bytes)
	}
	return w.records
}
