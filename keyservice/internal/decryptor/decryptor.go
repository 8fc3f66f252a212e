// Package decryptor takes a record value through the steps of spec/envelope.md, "Reading". Keys come from the caller; it knows
// nothing of Kafka.
package decryptor

import (
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Codes of spec/errors.md for what is met while reading.
const (
	PlaintextRejected    refusal.Code = "plaintext-rejected"
	PlaintextTooLong     refusal.Code = "plaintext-too-long"
	KeyUnavailable       refusal.Code = "record-key-unavailable"
	AuthenticationFailed refusal.Code = "authentication-failed"
	DecompressionFailed  refusal.Code = "decompression-failed"
)

// Keys gives the key of a kid and its scope, or the refusal for it. The key stays the giver's: it is not wiped here.
type Keys func(datakey.ID) (scope string, key *datakey.Key, err error)

// Reader reads values of one topic, one at a time.
type Reader struct {
	Keys            Keys
	AcceptPlaintext bool
	MaxPlaintext    int      // bytes
	Ciphers         *Ciphers // may be nil

	aad []byte // memory, used anew for each value
}

// RecordKey is that of a record, if it is known. Bytes is nil for a null key.
type RecordKey struct {
	Known bool
	Bytes []byte
}

// Read gives the plaintext of a value, nil for nil.
//
// Errors: those of spec/envelope.md, each a *refusal.Error, and what Keys returns.
func (r *Reader) Read(value []byte, key RecordKey) ([]byte, error) {
	return r.ReadInto([]byte{}, value, key)
}

// ReadInto is Read with memory for the plaintext, whose content is lost. The result is in it, in memory of its own, or value itself.
func (r *Reader) ReadInto(memory, value []byte, key RecordKey) ([]byte, error) {
	switch {
	case value == nil: // [CL-ENV-001]
		return nil, nil
	case !envelope.Is(value) && r.AcceptPlaintext: // [CL-ENV-002]
		return value, nil
	case !envelope.Is(value):
		return nil, refusal.New(PlaintextRejected, "the value is not encrypted")
	}
	e, err := envelope.Parse(value)
	if err != nil {
		return nil, err
	}
	if err := r.check(e, key); err != nil {
		return nil, err
	}
	scope, dataKey, err := r.Keys(e.Kid)
	if err != nil {
		return nil, err
	}
	aead, err := r.Ciphers.of(e, dataKey)
	if err != nil {
		return nil, err
	}
	r.aad = envelope.AppendAAD(r.aad[:0], e.Header, scope, key.Bytes)
	plaintext, err := aead.Open(memory[:0], e.Nonce[datakey.PrefixSize:], value[envelope.HeaderSize+envelope.NonceSize:], r.aad)
	if err != nil { // [CL-ENV-010]
		return nil, refusal.New(AuthenticationFailed, "the bytes, the scope or the bound record key were changed")
	}
	if e.Compressed {
		return decompress(plaintext, r.MaxPlaintext)
	}
	return plaintext, nil
}

// check refuses before a key is asked for.
func (r *Reader) check(e *envelope.Envelope, key RecordKey) error {
	switch {
	case !e.Compressed && len(e.Ciphertext) > r.MaxPlaintext: // [CL-ENV-013]
		return refusal.New(PlaintextTooLong, "%d bytes of plaintext; at most %d are read", len(e.Ciphertext), r.MaxPlaintext)
	case e.KeyBound && !key.Known: // [CL-ENV-008]
		return refusal.New(KeyUnavailable, "the record key is bound and not known here")
	}
	return nil
}
