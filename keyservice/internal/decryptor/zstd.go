// Decompression: exactly one zstd frame, in memory bounded by the limit [CL-ENV-011].

package decryptor

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

const maxWindow = 8 << 20

func decompress(frame []byte, limit int) ([]byte, error) {
	if !oneFrame(frame) {
		return nil, refusal.New(DecompressionFailed, "the content is not one zstd frame")
	}
	reader, err := zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, refusal.New(DecompressionFailed, "the zstd frame cannot be read")
	}
	defer reader.Close()
	plaintext, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	switch {
	case len(plaintext) > limit:
		return nil, refusal.New(PlaintextTooLong, "it decompresses to more than %d bytes", limit)
	case err != nil:
		return nil, refusal.New(DecompressionFailed, "the zstd frame cannot be read")
	}
	return plaintext, nil
}

// oneFrame walks over the blocks of a frame (RFC 8878, 3.1.1) to its end, which must be that of the data: the library would read a
// second frame, or pass over a skippable one, without a word.
func oneFrame(data []byte) bool {
	var header zstd.Header
	if err := header.Decode(data); err != nil || header.Skippable {
		return false
	}
	const blockHeader, rle, reserved, checksum = 3, 1, 3, 4
	at := header.HeaderSize
	for last := false; !last; {
		if at+blockHeader > len(data) {
			return false
		}
		word := int(data[at]) | int(data[at+1])<<8 | int(data[at+2])<<16
		kind, size := word>>1&3, word>>3
		switch kind {
		case rle:
			size = 1
		case reserved:
			return false
		}
		last = word&1 == 1
		at += blockHeader + size
	}
	if header.HasCheckSum {
		at += checksum
	}
	return at == len(data)
}
