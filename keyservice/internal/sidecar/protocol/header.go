// Headers of requests and responses.

package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors of a peer that does not keep to the protocol.
var (
	ErrCut        = errors.New("the frame ends within its header")
	ErrFrame      = errors.New("the length of a frame is out of range")
	ErrUnknownAPI = errors.New("the API or its version is not one that the sidecar understands")

	// ErrNewer is of an ApiVersions by a client that knows more of the protocol than the sidecar. To be answered with UnsupportedVersion.
	ErrNewer = errors.New("the version of ApiVersions is newer than the sidecar")
)

// HeaderLimit is how many bytes a request's header, and what stands before acks in Produce, can have at most: two texts of 32,767
// bytes and their tags. More is refused.
const HeaderLimit = 96 << 10

// Header is that of a request.
type Header struct {
	Key, Version  int16
	CorrelationID int32
	ClientID      *string
	Size          int // bytes, its tagged fields included
}

// ParseHeader reads the header at the beginning of a frame (after the length). p may be a prefix of the frame.
//
// Errors: ErrCut, ErrUnknownAPI; ErrNewer, with the header as far as its client id.
func ParseHeader(p []byte) (Header, error) {
	if len(p) < 8 {
		return Header{}, ErrCut
	}
	h := Header{Key: int16At(p, 0), Version: int16At(p, 2), CorrelationID: int32At(p, 4)}
	if h.Key == apiVersions && h.Version > known().highest[apiVersions] {
		return h, fmt.Errorf("%w: version %d", ErrNewer, h.Version)
	}
	if !Understood(h.Key, h.Version) {
		return h, fmt.Errorf("%w: key %d, version %d", ErrUnknownAPI, h.Key, h.Version)
	}
	rest := p[8:]
	text, rest, err := nullableText(rest)
	if err != nil {
		return h, err
	}
	h.ClientID = text
	if isFlexible(h.Key, h.Version) {
		if rest, err = skipTags(rest); err != nil {
			return h, err
		}
	}
	h.Size = len(p) - len(rest)
	return h, nil
}

// responseHeader tells how many bytes the header at the beginning of a response's frame has.
func responseHeader(key, version int16, p []byte) (int, error) {
	if len(p) < 4 {
		return 0, ErrCut
	}
	if !isFlexible(key, version) || key == apiVersions { // which old clients must understand whatever the version
		return 4, nil
	}
	rest, err := skipTags(p[4:])
	return len(p) - len(rest), err
}

// ExpectsResponse tells whether the broker will answer: it does, but for Produce with acks=0. body is what follows the header, or
// its beginning.
func ExpectsResponse(h Header, body []byte) (bool, error) {
	if h.Key != produce {
		return true, nil
	}
	var err error
	switch {
	case h.Version >= known().flexible[produce]:
		body, err = skipCompactText(body)
	case h.Version >= 3: // with a transactional id
		_, body, err = nullableText(body)
	}
	if err != nil {
		return false, err
	}
	if len(body) < 2 {
		return false, ErrCut
	}
	return int16At(body, 0) != 0, nil
}

const (
	produce     = 0
	apiVersions = 18
)

func int16At(p []byte, at int) int16 { return int16(binary.BigEndian.Uint16(p[at:])) } // #nosec G115 -- signed on the wire
func int32At(p []byte, at int) int32 { return int32(binary.BigEndian.Uint32(p[at:])) } // #nosec G115 -- signed on the wire

func nullableText(p []byte) (*string, []byte, error) {
	if len(p) < 2 {
		return nil, nil, ErrCut
	}
	size := int(int16At(p, 0))
	if size < 0 {
		return nil, p[2:], nil
	}
	if len(p) < 2+size {
		return nil, nil, ErrCut
	}
	text := string(p[2 : 2+size])
	return &text, p[2+size:], nil
}

func skipCompactText(p []byte) ([]byte, error) {
	size, p, err := uvarint(p)
	if err != nil || size == 0 { // null
		return p, err
	}
	return skip(p, size-1)
}

func skip(p []byte, n uint64) ([]byte, error) {
	if uint64(len(p)) < n {
		return nil, ErrCut
	}
	return p[n:], nil
}

func uvarint(p []byte) (uint64, []byte, error) {
	value, n := binary.Uvarint(p[:min(len(p), binary.MaxVarintLen32)])
	if n <= 0 || value > 1<<31 {
		return 0, nil, ErrCut
	}
	return value, p[n:], nil
}

// skipTags passes over tagged fields; each has at least two bytes, so the frame bounds their number.
func skipTags(p []byte) ([]byte, error) {
	count, p, err := uvarint(p)
	for ; err == nil && count > 0; count-- {
		var size uint64
		if _, p, err = uvarint(p); err != nil {
			break
		}
		if size, p, err = uvarint(p); err != nil {
			break
		}
		p, err = skip(p, size)
	}
	return p, err
}
