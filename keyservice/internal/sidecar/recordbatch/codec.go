// Kafka's compression codecs, with output bounded.

package recordbatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"
)

// MaxDecompressed is what the records of one batch may decompress to, in bytes.
const MaxDecompressed = 64 << 20

type codec uint16

// Codecs by their number in a batch's attributes.
const (
	none codec = iota
	gzipped
	snappy
	lz4ed
	zstded
)

const (
	xerialHeader = 16 // of the stream of blocks in which Java writes Snappy: magic, version, compatible version
	blockHeader  = 4
)

var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

var compressors = sync.OnceValue(func() map[codec]kgo.Compressor {
	all := map[codec]kgo.Compressor{}
	for c, of := range map[codec]kgo.CompressionCodec{
		gzipped: kgo.GzipCompression(), snappy: kgo.SnappyCompression(), lz4ed: kgo.Lz4Compression(), zstded: kgo.ZstdCompression(),
	} {
		one, err := kgo.DefaultCompressor(of)
		if err != nil {
			panic(err) // the codecs are those of the library
		}
		all[c] = one
	}
	return all
})

var zstdReaders = sync.Pool{New: func() any {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxDecompressed),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return r
}}

// working bounds how many codecs work at a time, each of which has buffers of its own: of lz4 some 8 MiB, if a frame says so.
var working = semaphore.NewWeighted(2 * int64(runtime.GOMAXPROCS(0)))

// work waits for a place, where one is needed; done leaves it.
func work(c codec) (done func()) {
	if c == none {
		return func() {}
	}
	_ = working.Acquire(context.Background(), 1) // whoever is there leaves soon
	return func() { working.Release(1) }
}

func compress(dst, data []byte, c codec) ([]byte, error) {
	if c == none {
		return append(dst, data...), nil
	}
	of := compressors()[c]
	if of == nil {
		return nil, ErrCodec
	}
	defer work(c)()
	out, used := of.Compress(&bytes.Buffer{}, data)
	if used < 0 {
		return nil, errors.New("compressing failed")
	}
	return append(dst, out...), nil
}

func decompress(data []byte, c codec, most int) (out []byte, err error) {
	defer work(c)()
	switch c {
	case none:
		out, most = data, MaxDecompressed
	case gzipped:
		r, failed := gzip.NewReader(bytes.NewReader(data))
		if failed != nil {
			return nil, ErrCorrupt
		}
		out, err = readAll(r, len(data), most)
	case snappy:
		out, err = unsnappy(data, most)
	case lz4ed:
		out, err = readAll(lz4.NewReader(bytes.NewReader(data)), len(data), most)
	case zstded:
		out, err = unzstd(data, most)
	default:
		return nil, ErrCodec
	}
	if len(out) > most {
		return nil, ErrTooLarge
	}
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, ErrCorrupt
	}
	return out, err
}

// firstGuess is how much memory is tried first for what so many bytes decompress to.
func firstGuess(size, most int) int { return min(3*size+bytes.MinRead, most) }

func readAll(r io.Reader, size, most int) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, firstGuess(size, most)))
	_, err := out.ReadFrom(io.LimitReader(r, int64(most)+1))
	return out.Bytes(), err
}

// unzstd tries with more and more memory: a frame need not tell how much it takes, and what it tells need not be true.
func unzstd(data []byte, most int) ([]byte, error) {
	r, ok := zstdReaders.Get().(*zstd.Decoder)
	if !ok {
		return nil, ErrCorrupt
	}
	defer zstdReaders.Put(r)
	for size := firstGuess(len(data), most); ; size = min(4*size, most) {
		out, err := r.DecodeAll(data, make([]byte, 0, size))
		full := errors.Is(err, zstd.ErrDecoderSizeExceeded)
		switch {
		case full && size < most:
			continue
		case full, errors.Is(err, zstd.ErrWindowSizeExceeded):
			return nil, ErrTooLarge
		}
		return out, err
	}
}

// unsnappy reads one block, or Java's stream of them.
func unsnappy(data []byte, most int) (out []byte, err error) {
	if !bytes.HasPrefix(data, xerialMagic) {
		return appendBlock(nil, data, most)
	}
	if len(data) < xerialHeader {
		return nil, ErrCorrupt
	}
	for data = data[xerialHeader:]; len(data) > 0; {
		if len(data) < blockHeader {
			return nil, ErrCorrupt
		}
		size := int64(binary.BigEndian.Uint32(data))
		if data = data[blockHeader:]; size > int64(len(data)) {
			return nil, ErrCorrupt
		}
		if out, err = appendBlock(out, data[:size], most); err != nil {
			return nil, err
		}
		data = data[size:]
	}
	return out, nil
}

func appendBlock(dst, block []byte, most int) ([]byte, error) {
	size, err := s2.DecodedLen(block)
	if err != nil {
		return nil, ErrCorrupt
	}
	if size > most-len(dst) {
		return nil, ErrTooLarge
	}
	plain, err := s2.Decode(nil, block)
	if err != nil {
		return nil, ErrCorrupt
	}
	if dst == nil {
		return plain, nil
	}
	return append(dst, plain...), nil
}
