// Package datakey holds data keys (DEKs) and their ids. It is the only package that touches key bytes: others
// wrap, unwrap and encode keys through it and cannot print them.
package datakey

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/tink-crypto/tink-go/v2/tink"
)

// Size is the size of a data key in bytes, IDSize that of a key id.
const (
	Size   = 32
	IDSize = 16
)

// idInfo is the info string of the key id's derivation [CL-ENV-020].
const idInfo = "cipherlane v1 key id"

const redacted = "[data key]"

// errNotPrintable answers every attempt to serialise a key by the usual ways.
var errNotPrintable = errors.New("a data key is never serialised in the clear")

// ID is a key id (kid). It commits to the key [CL-ENV-020].
type ID [IDSize]byte

// ParseID reads 32 lowercase hexadecimal digits.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != hex.EncodedLen(IDSize) {
		return id, errors.New("a kid is 32 lowercase hexadecimal digits")
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return id, errors.New("a kid is 32 lowercase hexadecimal digits")
		}
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err
}

// String gives 32 lowercase hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Key is a data key of 32 bytes. Every usual way to print or serialise it shows a placeholder or fails. A Key is not
// safe for use while it is wiped. The bytes stand behind a pointer, because fmt passes Format by for a wrong verb and would
// show what stands in the struct itself.
type Key struct {
	bytes *[Size]byte
	ended *atomic.Bool // whether the key that this one is, or was cloned from, was wiped
	clone bool
}

func newKey(bytes *[Size]byte) *Key { return &Key{bytes: bytes, ended: new(atomic.Bool)} }

// Generate draws a key from the operating system's cryptographic random source [CL-API-010].
func Generate() *Key {
	k := newKey(new([Size]byte))
	if _, err := rand.Read(k.bytes[:]); err != nil {
		// crypto/rand documents that this cannot happen: it ends the process itself.
		panic("the random source failed")
	}
	return k
}

// ID derives the key's id [CL-ENV-020].
func (k *Key) ID() (ID, error) {
	var id ID
	derived, err := hkdf.Key(sha256.New, k.bytes[:], nil, idInfo, IDSize)
	if err != nil {
		return id, fmt.Errorf("derive the key id: %w", err)
	}
	copy(id[:], derived)
	return id, nil
}

// Wrap encrypts the key under a KEK.
func (k *Key) Wrap(kek tink.AEAD, associatedData []byte) ([]byte, error) {
	wrapped, err := kek.Encrypt(k.bytes[:], associatedData)
	if err != nil {
		return nil, fmt.Errorf("wrap a data key: %w", err)
	}
	return wrapped, nil
}

// Unwrap decrypts a wrapped key and checks that it hashes to the id under which it was stored.
func Unwrap(kek tink.AEAD, wrapped, associatedData []byte, want ID) (*Key, error) {
	plain, err := kek.Decrypt(wrapped, associatedData)
	if err != nil {
		return nil, fmt.Errorf("unwrap data key %s: %w", want, err)
	}
	defer clear(plain)
	return Parse(plain, want)
}

// Parse takes a key that was unwrapped elsewhere and checks that it hashes to the id under which it was stored. It
// copies plain, which the caller clears.
func Parse(plain []byte, want ID) (*Key, error) {
	k, err := fromBytes(plain)
	if err != nil {
		return nil, fmt.Errorf("data key %s: %w", want, err)
	}
	if id, err := k.ID(); err != nil || id != want {
		k.Wipe()
		return nil, fmt.Errorf("data key %s does not hash to its id", want)
	}
	return k, nil
}

func fromBytes(plain []byte) (*Key, error) {
	if len(plain) != Size {
		return nil, fmt.Errorf("%d bytes are not the %d of a data key", len(plain), Size)
	}
	bytes := [Size]byte(plain)
	return newKey(&bytes), nil
}

// AppendBase64 appends the key in standard base64 (44 characters): the form in which an answer carries it.
func (k *Key) AppendBase64(dst []byte) []byte {
	return base64.StdEncoding.AppendEncode(dst, k.bytes[:])
}

// Clone gives a key that is wiped apart from this one.
func (k *Key) Clone() *Key {
	bytes := *k.bytes
	return &Key{bytes: &bytes, ended: k.ended, clone: true}
}

// Wipe overwrites the key.
func (k *Key) Wipe() {
	if !k.clone {
		k.ended.Store(true)
	}
	clear(k.bytes[:])
}

// Held tells whether the key that this one was cloned from, by however many steps, has not been wiped: what is derived from a clone must not be
// kept longer [CL-ENV-034].
func (k *Key) Held() bool { return !k.ended.Load() }

// Format implements fmt.Formatter for every verb: it shows a placeholder.
func (Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer: it shows a placeholder.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler: it always fails.
func (Key) MarshalText() ([]byte, error) { return nil, errNotPrintable }

// MarshalJSON implements json.Marshaler: it always fails.
func (Key) MarshalJSON() ([]byte, error) { return nil, errNotPrintable }

// MarshalBinary implements encoding.BinaryMarshaler, and with it gob: it always fails.
func (Key) MarshalBinary() ([]byte, error) { return nil, errNotPrintable }
