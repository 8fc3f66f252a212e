// Package reference is a small Cipherlane SDK in Go, made to be compared with: the envelope (this file), Tink as its cipher
// (cipher.go), the key service's answers (answers.go), its client and key cache (keys.go), encrypting and decrypting
// (sdk.go), Kafka by franz-go (kafka.go), and the driver around it all (driver.go). It is not made to be fast.
package reference

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

const (
	headerSize = 20
	nonceSize  = 24
	overhead   = headerSize + nonceSize + 16
	flagZstd   = 1
	flagBound  = 4
)

func refuse(code, format string, args ...any) *driver.Error {
	return &driver.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

type envelope struct {
	header     []byte // magic, version, flags, kid
	ciphertext []byte // nonce, ciphertext, tag: what Tink takes
}

func (e envelope) kid() string       { return hex.EncodeToString(e.header[4:]) }
func (e envelope) compressed() bool  { return e.header[3]&3 == flagZstd }
func (e envelope) bound() bool       { return e.header[3]&flagBound != 0 }
func (e envelope) plaintextLen() int { return len(e.ciphertext) - nonceSize - 16 }

func isEnvelope(value []byte) bool { return len(value) >= 2 && value[0] == 0xc1 && value[1] == 0x9e }

// parse takes steps 4 to 7 of envelope.md.
func parse(value []byte, maxPlaintext int) (envelope, error) {
	switch {
	case len(value) == 2:
		return envelope{}, refuse("envelope-too-short", "no version")
	case value[2] != 1 && !without("version"):
		return envelope{}, refuse("unsupported-version", "version %d", value[2])
	case len(value) < overhead:
		return envelope{}, refuse("envelope-too-short", "%d bytes", len(value))
	case (value[3]&^7 != 0 || value[3]&3 > flagZstd) && !without("flags"):
		return envelope{}, refuse("unsupported-flags", "flags %08b", value[3])
	}
	e := envelope{value[:headerSize], value[headerSize:]}
	if !e.compressed() && e.plaintextLen() > maxPlaintext && !without("limit") {
		return envelope{}, refuse("plaintext-too-long", "%d bytes", e.plaintextLen())
	}
	return e, nil
}

func newHeader(kid string, flags byte) ([]byte, error) {
	id, err := hex.DecodeString(kid)
	return append([]byte{0xc1, 0x9e, 1, flags}, id...), err
}

// additionalData is the AAD of envelope.md; recordKey counts only where the header binds it.
func additionalData(header []byte, scope string, recordKey []byte) []byte {
	aad := append([]byte{}, header...)
	aad = binary.BigEndian.AppendUint16(aad, uint16(len(scope)))
	aad = append(aad, scope...)
	if header[3]&flagBound == 0 {
		return aad
	}
	if recordKey == nil {
		return binary.BigEndian.AppendUint32(aad, 0xffffffff)
	}
	return append(binary.BigEndian.AppendUint32(aad, uint32(len(recordKey))), recordKey...)
}
