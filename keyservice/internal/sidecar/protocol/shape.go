// Bounds for what kmsg allocates: it makes an array as long as the frame says if only the frame has as many bytes. So the arrays of
// messages with records, which may be as long as a frame, are walked first; other messages are decoded only up to a size.

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

// maxElements bounds the topics, partitions and aborted transactions of one message with records.
const maxElements = 200_000

// ErrShape means that a message has more elements than are decoded, or ends within one.
var ErrShape = fmt.Errorf("the message ends within an element, or has more than %d", maxElements)

func checkShape(key, version int16, p []byte, request bool) error {
	c := &cursor{rest: p, flexible: isFlexible(key, version)}
	limit := maxResponseBody
	if request {
		limit = maxRequestBody
	}
	switch api := kmsg.Key(key); {
	case request && api == kmsg.Produce:
		c.produce(version)
	case !request && api == kmsg.Fetch:
		c.fetched(version)
	case !request && api == kmsg.ShareFetch:
		c.shareFetched(version)
	case len(p) > limit:
		return fmt.Errorf("%s: its body has %d bytes, more than the %d that are decoded", kmsg.NameForKey(key), len(p), limit)
	}
	if c.bad {
		return fmt.Errorf("%s: %w", kmsg.NameForKey(key), ErrShape)
	}
	return nil
}

// cursor walks a message. Once something is wrong it stays bad and gives nothing more.
type cursor struct {
	rest     []byte
	flexible bool
	elements int
	bad      bool
}

func (c *cursor) produce(version int16) {
	if version >= 3 {
		c.data(2) // the transactional id
	}
	c.skip(2 + 4) // acks, timeout
	c.array(func() {
		c.topic(version, 13)
		c.array(func() {
			c.skip(4)
			c.data(4) // records
			c.tags()
		})
		c.tags()
	})
}

func (c *cursor) fetched(version int16) {
	c.since(version, 1, 4)   // throttled
	c.since(version, 7, 2+4) // error, session
	c.array(func() {
		c.topic(version, 13)
		c.array(func() {
			c.skip(4 + 2 + 8)
			c.since(version, 4, 8) // last stable offset
			c.since(version, 5, 8) // log start offset
			if version >= 4 {
				c.array(func() { // aborted transactions
					c.skip(8 + 8)
					c.tags()
				})
			}
			c.since(version, 11, 4) // preferred replica
			c.data(4)               // records
			c.tags()
		})
		c.tags()
	})
}

func (c *cursor) shareFetched(version int16) {
	c.skip(4 + 2)
	c.data(2)              // error message
	c.since(version, 1, 4) // time of the acquisition lock
	c.array(func() {
		c.skip(16)
		c.array(func() {
			c.skip(4 + 2)
			c.data(2) // error message
			c.skip(2)
			c.data(2)     // error message of acknowledging
			c.skip(4 + 4) // leader
			c.tags()
			c.data(4) // records
			c.array(func() {
				c.skip(8 + 8 + 2)
				c.tags()
			})
			c.tags()
		})
		c.tags()
	})
}

func (c *cursor) since(version, first int16, size uint64) {
	if version >= first {
		c.skip(size)
	}
}

// topic is a name, or an id from a version on.
func (c *cursor) topic(version, ids int16) {
	if version >= ids {
		c.skip(16)
		return
	}
	c.data(2)
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
	c.skip(uint64(width)) // #nosec G115 -- 2 or 4
	return uint64(max(n, 0))
}

// data passes over bytes or a text.
func (c *cursor) data(width int) { c.skip(c.length(width)) }

// array walks elements, each of which must be there.
func (c *cursor) array(element func()) {
	n := c.length(4)
	if n > uint64(maxElements-c.elements) { // #nosec G115 -- never negative
		c.take(nil, ErrShape)
		return
	}
	c.elements += int(n) // #nosec G115 -- bounded above
	for ; n > 0 && !c.bad; n-- {
		element()
	}
}
