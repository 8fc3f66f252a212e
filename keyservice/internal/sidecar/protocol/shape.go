// Bounds for what kmsg takes on: it makes an array as long as a message says if only the message has as many bytes, and it counts as many
// tagged fields as a message says, whether they are there or not. So every message is walked, by its layout, before kmsg reads it.

package protocol

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Limits of bodies that are decoded, in bytes (spec/sidecar.md).
const (
	maxRequestBody  = 2 << 20
	maxResponseBody = 64 << 20
)

// maxElements bounds the elements of all arrays of one message.
const maxElements = 1_000_000

// ErrShape means that a message has more elements than are decoded, or ends within one.
var ErrShape = fmt.Errorf("the message ends within an element, or has more than %d", maxElements)

func checkShape(key, version int16, p []byte, request bool) error {
	_, err := walk(key, version, p, request)
	return err
}

// walk passes over a whole message.
func walk(key, version int16, p []byte, request bool) (*cursor, error) {
	limit := maxResponseBody
	if request {
		limit = maxRequestBody
	}
	if !carriesRecords(key, request) && len(p) > limit {
		return nil, fmt.Errorf("%s: its body has %d bytes, more than the %d that are decoded", kmsg.NameForKey(key), len(p), limit)
	}
	fields, err := layoutOf(key, version, request)
	if err != nil {
		return nil, err
	}
	c := &cursor{rest: p, flexible: isFlexible(key, version)}
	c.walk(fields)
	if c.bad {
		return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(key), ErrShape)
	}
	return c, nil
}

// carriesRecords tells of messages that may be as long as a frame.
func carriesRecords(key int16, request bool) bool {
	switch kmsg.Key(key) { //nolint:exhaustive // the others carry none
	case kmsg.Produce:
		return request
	case kmsg.Fetch, kmsg.ShareFetch:
		return !request
	default:
		return false
	}
}

// cursor walks a message. Once something is wrong it stays bad and gives nothing more.
type cursor struct {
	rest     []byte
	flexible bool
	elements int
	tagged   bool // there are tagged fields
	bad      bool
}

// walk passes over a structure and its tagged fields.
func (c *cursor) walk(fields []field) {
	for i := range fields {
		if c.bad {
			return
		}
		c.pass(&fields[i])
	}
	c.tags()
}

func (c *cursor) pass(f *field) {
	switch f.kind {
	case fixed:
		c.skip(uint64(f.width)) // #nosec G115 -- a few bytes
	case data:
		c.skip(c.length(f.width))
	case array:
		c.array(f)
	case structure:
		c.walk(f.of)
	case nullable:
		if len(c.rest) > 0 && int8(c.rest[0]) < 0 { // #nosec G115 -- signed on the wire
			c.skip(1)
			return
		}
		c.skip(1)
		c.walk(f.of)
	}
}

// array walks elements, each of which must be there.
func (c *cursor) array(f *field) {
	n := c.length(4)
	if n > uint64(min(maxElements-c.elements, len(c.rest))) { // #nosec G115 -- never negative
		c.take(nil, ErrShape)
		return
	}
	c.elements += int(n) // #nosec G115 -- bounded above
	for ; n > 0 && !c.bad; n-- {
		c.pass(&f.of[0])
	}
}

func (c *cursor) skip(n uint64) {
	rest, err := skip(c.rest, n)
	c.take(rest, err)
}

func (c *cursor) take(rest []byte, err error) {
	if err != nil || c.bad {
		c.bad, c.rest = true, nil
		return
	}
	c.rest = rest
}

func (c *cursor) tags() {
	if c.flexible {
		c.tagged = c.tagged || len(c.rest) > 0 && c.rest[0] != 0
		rest, err := skipTags(c.rest)
		c.take(rest, err)
	}
}

// length reads that of an array or of data; width is its size where the message is not flexible. Null has length 0.
func (c *cursor) length(width int) uint64 {
	if c.flexible {
		n, rest, err := uvarint(c.rest)
		c.take(rest, err)
		return max(n, 1) - 1
	}
	if len(c.rest) < width {
		c.take(nil, ErrShape)
		return 0
	}
	n := int64(int16At(c.rest, 0))
	if width == 4 {
		n = int64(int32At(c.rest, 0))
	}
	c.skip(uint64(width))    // #nosec G115 -- 2 or 4
	return uint64(max(n, 0)) // #nosec G115 -- not negative
}
