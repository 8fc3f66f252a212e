// Kafka's compression codecs, with output bounded.

package recordbatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
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
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxDecompressed))
	if err != nil {
		panic(err) // the options are constants
	}
	return r
}}

func compress(dst, data []byte, c codec) ([]byte, error) {
	if c == none {
		return append(dst, data...), nil
	}
	of := compressors()[c]
	if of == nil {
		return nil, ErrCodec
	}
	out, used := of.Compress(&bytes.Buffer{}, data)
	if used < 0 {
		return nil, errors.New("compressing failed")
	}
	return append(dst, out...), nil
}

func decompress(data []byte, c codec) (out []byte, err error) {
	switch c {
	case none:
		out = data
	case gzipped:
		r, failed := gzip.NewReader(bytes.NewReader(data))
		if failed != nil {
			return nil, ErrCorrupt
		}
		out, err = readAll(r, len(data))
	case snappy:
		out, err = unsnappy(data)
	case lz4ed:
		out, err = readAll(lz4.NewReader(bytes.NewReader(data)), len(data))
	case zstded:
		out, err = unzstd(data)
	default:
		return nil, ErrCodec
	}
	if len(out) > MaxDecompressed {
		return nil, ErrTooLarge
	}
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, ErrCorrupt
	}
	return out, err
}

func readAll(r io.Reader, size int) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, 3*size+bytes.MinRead))
	_, err := out.ReadFrom(io.LimitReader(r, MaxDecompressed+1))
	return out.Bytes(), err
}

func unzstd(data []byte) ([]byte, error) {
	r, ok := zstdReaders.Get().(*zstd.Decoder)
	if !ok {
		return nil, ErrCorrupt
	}
	defer zstdReaders.Put(r)
	out, err := r.DecodeAll(data, nil)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, ErrTooLarge
	}
	return out, err
}

// unsnappy reads one block, or Java's stream of them.
func unsnappy(data []byte) (out []byte, err error) {
	if !bytes.HasPrefix(data, xerialMagic) {
		return appendBlock(nil, data)
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
		if out, err = appendBlock(out, data[:size]); err != nil {
			return nil, err
		}
		data = data[size:]
	}
	return out, nil
}

func appendBlock(dst, block []byte) ([]byte, error) {
	size, err := s2.DecodedLen(block)
	if err != nil {
		return nil, ErrCorrupt
	}
	if size > MaxDecompressed-len(dst) {
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
