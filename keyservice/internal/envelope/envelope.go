// Package envelope reads and writes the bytes of an encrypted record value and builds its AAD (spec/envelope.md). It knows nothing of keys, the
// network or Kafka.
package envelope

import (
	"encoding/binary"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Codes of spec/errors.md, layer parse.
const (
	TooShort           refusal.Code = "envelope-too-short"
	UnsupportedVersion refusal.Code = "unsupported-version"
	UnsupportedFlags   refusal.Code = "unsupported-flags"
)

// Sizes and offsets in bytes.
const (
	MagicSize   = 2
	HeaderSize  = 20 // magic, version, flags, kid: what the AAD begins with
	NonceSize   = 24
	SessionSize = 20 // of the nonce: the encrypting session's random part
	TagSize     = 16
	MinSize     = HeaderSize + NonceSize + TagSize
)

const (
	magic0, magic1  = 0xC1, 0x9E
	version         = 1
	flagCompression = 0x03
	flagKeyBound    = 0x04
	zstd            = 1
	// nullKey stands in the AAD for the size of a record key that is null.
	nullKey = 0xFFFFFFFF
)

// Is tells whether a value starts with the magic: then it is to be treated as an envelope [CL-ENV-003].
func Is(value []byte) bool {
	return len(value) >= MagicSize && value[0] == magic0 && value[1] == magic1
}

// Envelope is one that was parsed. Its parts point into the value.
type Envelope struct {
	Header     []byte // magic, version, flags, kid
	Kid        datakey.ID
	Compressed bool // one zstd frame
	KeyBound   bool // the record key is part of the AAD
	Nonce      []byte
	Ciphertext []byte // without the tag
	Tag        []byte
}

// Counter is the record's number in its encrypting session, from 0.
func (e *Envelope) Counter() uint32 { return binary.BigEndian.Uint32(e.Nonce[SessionSize:]) }

// Sealed gives nonce, ciphertext and tag, which together are a Tink X-AES-GCM ciphertext.
func (e *Envelope) Sealed(value []byte) []byte { return value[HeaderSize:] }

// Parse takes steps 4 to 7 of reading a value that starts with the magic.
//
// Errors: envelope-too-short, unsupported-version, unsupported-flags.
func Parse(value []byte) (*Envelope, error) {
	switch {
	case len(value) <= MagicSize: // [CL-ENV-004]
		return nil, refusal.New(TooShort, "%d bytes: there is no version", len(value))
	case value[2] != version: // [CL-ENV-005]
		return nil, refusal.New(UnsupportedVersion, "version %d; this program reads version %d", value[2], version)
	case len(value) < MinSize: // [CL-ENV-006]
		return nil, refusal.New(TooShort, "%d bytes; an envelope has at least %d", len(value), MinSize)
	case value[3]&^byte(flagCompression|flagKeyBound) != 0 || value[3]&flagCompression > zstd: // [CL-ENV-007]
		return nil, refusal.New(UnsupportedFlags, "flags %08b: bits 3 to 7 must be 0, and compression (bits 0 and 1) 0 or 1", value[3])
	}
	end := len(value) - TagSize
	return &Envelope{
		Header: value[:HeaderSize], Kid: datakey.ID(value[4:HeaderSize]),
		Compressed: value[3]&flagCompression == zstd, KeyBound: value[3]&flagKeyBound != 0,
		Nonce: value[HeaderSize : HeaderSize+NonceSize], Ciphertext: value[HeaderSize+NonceSize : end], Tag: value[end:],
	}, nil
}

// AAD builds the associated data [CL-ENV-021]. recordKey matters only if it is bound; nil is a null key.
func (e *Envelope) AAD(scope string, recordKey []byte) []byte {
	return AppendAAD(nil, e.Header, scope, recordKey)
}

// NewHeader gives magic, version, flags and kid of an envelope without compression [CL-ENV-043].
func NewHeader(kid datakey.ID, keyBound bool) [HeaderSize]byte {
	header := [HeaderSize]byte{magic0, magic1, version}
	if keyBound {
		header[3] = flagKeyBound
	}
	copy(header[4:], kid[:])
	return header
}

// AppendAAD appends the associated data of an envelope with this header [CL-ENV-021].
func AppendAAD(dst, header []byte, scope string, recordKey []byte) []byte {
	dst = append(dst, header[:HeaderSize]...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(scope))) // #nosec G115 -- a scope has at most 249 bytes
	dst = append(dst, scope...)
	switch {
	case header[3]&flagKeyBound == 0:
		return dst
	case recordKey == nil:
		return binary.BigEndian.AppendUint32(dst, nullKey)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(recordKey))) // #nosec G115 -- Kafka's limit is 2^31 - 1
	return append(dst, recordKey...)
}
