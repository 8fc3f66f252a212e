package reference

import (
	"bytes"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

const defaultMaxPlaintext = 64 << 20

// sdk encrypts and decrypts values.
type sdk struct {
	keys         *keys
	maxPlaintext int
}

func open(settings map[string]string) (*sdk, error) {
	limit := defaultMaxPlaintext
	if text, set := settings["cipherlane.max.plaintext.bytes"]; set {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return nil, refuse("configuration-invalid", "cipherlane.max.plaintext.bytes: %q", text)
		}
	}
	keys, err := newKeys(settings)
	if err != nil {
		return nil, err
	}
	return &sdk{keys, limit}, nil
}

func (s *sdk) encrypt(topic string, value []byte) ([]byte, error) {
	if !validName(topic) && !without("topic") {
		return nil, refuse("topic-invalid", "%q", topic)
	}
	if len(value) > s.maxPlaintext {
		return nil, refuse("plaintext-too-long", "%d bytes", len(value))
	}
	grant, err := s.keys.grant(topic)
	if err != nil {
		if without("fail-closed") {
			return value, nil
		}
		return nil, err
	}
	return s.write(topic, grant, value)
}

// write does what the topic's mode says.
func (s *sdk) write(topic string, grant grant, value []byte) ([]byte, error) {
	switch {
	case grant.mode == "forbid" && !without("forbid"):
		return nil, refuse("topic-forbidden", "topic %s", topic)
	case grant.mode == "clear" && isEnvelope(value) && !without("ambiguous"):
		return nil, refuse("ambiguous-plaintext", "topic %s", topic)
	case grant.mode != "encrypt" || value == nil:
		return value, nil
	}
	return Seal(grant.key, grant.scope, nil, false, value)
}

// decrypt takes the steps of "Reading" in envelope.md, in their order.
func (s *sdk) decrypt(topic string, value []byte, recordKey *driver.RecordKey) ([]byte, error) {
	if !validName(topic) {
		return nil, refuse("topic-invalid", "%q", topic)
	}
	if value == nil {
		return nil, nil
	}
	if !isEnvelope(value) {
		return s.plaintext(topic, value)
	}
	e, err := parse(value, s.maxPlaintext)
	if err != nil {
		return nil, err
	}
	if e.bound() && recordKey == nil && !without("record-key") {
		return nil, refuse("record-key-unavailable", "topic %s", topic)
	}
	read, err := s.keys.readable(topic, []string{e.kid()})
	if err != nil {
		return nil, err
	}
	return s.unseal(e, read.keys[e.kid()], recordKey)
}

func (s *sdk) plaintext(topic string, value []byte) ([]byte, error) {
	read, err := s.keys.readable(topic, nil)
	if err != nil {
		return nil, err
	}
	if read.plaintext != "accept" && !without("plaintext") {
		return nil, refuse("plaintext-rejected", "topic %s", topic)
	}
	return value, nil
}

func (s *sdk) unseal(e envelope, key held, recordKey *driver.RecordKey) ([]byte, error) {
	if key.err != nil {
		return nil, key.err
	}
	cipher, err := newCipher(key.key)
	if err != nil {
		return nil, err
	}
	var bound []byte
	if recordKey != nil {
		bound = recordKey.Bytes
	}
	plaintext, err := cipher.Decrypt(e.ciphertext, additionalData(e.header, key.scope, bound))
	if err != nil && without("tag") {
		return nil, nil
	}
	if err != nil {
		return nil, refuse("authentication-failed", "kid %s", e.kid())
	}
	if e.compressed() {
		return decompress(plaintext, s.maxPlaintext)
	}
	return append([]byte{}, plaintext...), nil
}

// decompress takes exactly one frame [CL-ENV-011].
func decompress(frame []byte, limit int) ([]byte, error) {
	failed := refuse("decompression-failed", "not one zstd frame")
	var header zstd.Header
	if err := header.Decode(frame); err != nil || header.Skippable {
		return nil, failed
	}
	if moreFrames(frame) && !without("one-frame") {
		return nil, failed
	}
	reader, err := zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	plaintext, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	switch {
	case len(plaintext) > limit:
		return nil, refuse("plaintext-too-long", "over %d bytes", limit)
	case err != nil:
		return nil, failed
	}
	return plaintext, nil
}

// moreFrames walks over the blocks of the first frame (RFC 8878, 3.1.1) and says whether anything stands behind it.
func moreFrames(data []byte) bool {
	var header zstd.Header
	if header.Decode(data) != nil {
		return true
	}
	rest := data[header.HeaderSize:]
	for last := false; !last; {
		if len(rest) < 3 {
			return true
		}
		block := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16
		size := block >> 3
		if block>>1&3 == 1 { // RLE: one byte, whatever the size
			size = 1
		}
		if last = block&1 == 1; len(rest) < 3+size {
			return true
		}
		rest = rest[3+size:]
	}
	if header.HasCheckSum {
		rest = rest[min(4, len(rest)):]
	}
	return len(rest) > 0
}

// Decompress is what a reader makes of an authentic compressed plaintext, with the default limit.
func Decompress(frame []byte) ([]byte, error) { return decompress(frame, defaultMaxPlaintext) }

// Seal makes an envelope as a writer with this key and scope would; recordKey is bound unless it is not known (nil), and a frame
// (zstd) is marked as compressed.
func Seal(key []byte, scope string, recordKey *driver.RecordKey, compressed bool, value []byte) ([]byte, error) {
	kid, err := KeyID(key)
	if err != nil {
		return nil, err
	}
	var flags byte
	var bound []byte
	if recordKey != nil {
		flags, bound = flagBound, recordKey.Bytes
	}
	if compressed {
		flags |= flagZstd
	}
	header, err := newHeader(kid, flags)
	if err != nil {
		return nil, err
	}
	cipher, err := newCipher(key)
	if err != nil {
		return nil, err
	}
	ciphertext, err := cipher.Encrypt(value, additionalData(header, scope, bound))
	return append(header, ciphertext...), err
}
