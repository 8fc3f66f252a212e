// Frames: a length of four bytes, and what it counts.

package protocol

import (
	"fmt"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// FrameSize waits for the next frame and gives its size without the length, which stays in the reader.
//
// Errors: ErrFrame, and those of Peek.
func FrameSize(from *wire.Reader, limit int) (int, error) {
	p, err := from.Peek(4)
	if err != nil {
		return 0, err
	}
	size := int(int32At(p, 0))
	if size < 4 || size > limit {
		return 0, fmt.Errorf("%w: %d, expected 4 to %d", ErrFrame, size, limit)
	}
	return size, nil
}

// ReadFrame reads a frame into memory of its own, without its length.
func ReadFrame(from *wire.Reader, limit int) ([]byte, error) {
	size, err := FrameSize(from, limit)
	if err != nil {
		return nil, err
	}
	from.Discard(4)
	p := make([]byte, size)
	return p, from.ReadFull(p)
}
