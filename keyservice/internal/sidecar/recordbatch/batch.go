// Package recordbatch reads and writes Kafka's record batches (message format 2) as they stand in Produce requests and Fetch
// responses, so that values can be changed while everything else stays as it is. It knows nothing of keys and of the network.
//
// Source: Kafka's documentation, "Implementation", "Message format".
package recordbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Offsets of a batch's fields, and the size of its header, in bytes.
const (
	lengthAt          = 8
	afterLength       = 12 // what the length counts begins here
	magicAt           = 16
	crcAt             = 17
	attributesAt      = 21 // what the CRC covers begins here
	lastOffsetDeltaAt = 23
	countAt           = 57
	HeaderSize        = 61
)

const (
	magic         = 2
	codecBits     = 0x07
	controlBit    = 0x20
	minRecordSize = 7 // length, attributes, deltas of time and offset, sizes of key and value, number of headers
)

// Errors of hostile or damaged batches.
var (
	ErrCorrupt  = errors.New("the record batch is damaged")
	ErrFormat   = errors.New("the message format is older than 2: such records cannot be encrypted or decrypted here")
	ErrCodec    = errors.New("the compression codec is unknown")
	ErrTooLarge = fmt.Errorf("the record batch decompresses to more than %d bytes, or is asked to be less", MaxDecompressed)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is one that was found whole: its length, format and CRC are right.
type Batch struct{ raw []byte }

// Next cuts the first batch off data. A rest that is not a whole batch gives rest as it is, with no batch and no error: brokers cut
// the last batch of a Fetch response anywhere.
//
// Errors: ErrCorrupt, ErrFormat.
func Next(data []byte) (batch Batch, rest []byte, err error) {
	if len(data) < magicAt+1 {
		return Batch{}, data, nil
	}
	size := int64(int32(binary.BigEndian.Uint32(data[lengthAt:]))) + afterLength // #nosec G115 -- as Kafka reads it
	switch {
	case size <= magicAt:
		return Batch{}, data, ErrCorrupt
	case data[magicAt] < magic:
		return Batch{}, data, ErrFormat
	case data[magicAt] > magic, size < HeaderSize:
		return Batch{}, data, ErrCorrupt
	case size > int64(len(data)):
		return Batch{}, data, nil
	}
	b := Batch{data[:size:size]}
	if b.Count() < 0 || b.LastOffsetDelta() < 0 || crc32.Checksum(b.raw[attributesAt:], castagnoli) != binary.BigEndian.Uint32(b.raw[crcAt:]) {
		return Batch{}, data, ErrCorrupt
	}
	return b, data[size:], nil
}

// Raw gives the whole batch.
func (b Batch) Raw() []byte { return b.raw }

// BaseOffset is that of the first record when the batch was written.
func (b Batch) BaseOffset() int64 {
	return int64(binary.BigEndian.Uint64(b.raw)) // #nosec G115 -- as Kafka reads it
}

// LastOffsetDelta is that of the last record when the batch was written, from BaseOffset.
func (b Batch) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(b.raw[lastOffsetDeltaAt:])) // #nosec G115 -- as Kafka reads it
}

// Count is the number of records.
func (b Batch) Count() int32 {
	return int32(binary.BigEndian.Uint32(b.raw[countAt:])) // #nosec G115 -- as Kafka reads it
}

// Control tells whether it marks the end of a transaction or the like: no application's records are in it.
func (b Batch) Control() bool { return b.attributes()&controlBit != 0 }

func (b Batch) attributes() uint16 { return binary.BigEndian.Uint16(b.raw[attributesAt:]) }

// Compressed tells whether Decompressed takes memory of its own.
func (b Batch) Compressed() bool { return b.attributes()&codecBits != 0 }

// AnyCompressed tells whether one of the batches in data claims to be, which Next has not looked at.
func AnyCompressed(data []byte) bool {
	for len(data) >= HeaderSize {
		size := int64(binary.BigEndian.Uint32(data[lengthAt:])) + afterLength
		if binary.BigEndian.Uint16(data[attributesAt:])&codecBits != 0 {
			return true
		}
		data = data[min(size, int64(len(data))):]
	}
	return false
}

// Decompressed gives the records, with at most so many bytes of memory for them where they are compressed, and MaxDecompressed.
//
// Errors: ErrCorrupt, ErrCodec, ErrTooLarge.
func (b Batch) Decompressed(most int) ([]byte, error) {
	data, err := decompress(b.raw[HeaderSize:], codec(b.attributes()&codecBits), min(max(most, 0), MaxDecompressed))
	if err != nil {
		return nil, err
	}
	if int64(b.Count())*minRecordSize > int64(len(data)) {
		return nil, ErrCorrupt
	}
	return data, nil
}

// Append appends the batch with other records in place of its own: count of them, of offsets up to BaseOffset + lastOffsetDelta.
// They are compressed as the batch was; everything else (producer, sequence, times, transaction) stays.
func (b Batch) Append(dst, records []byte, count, lastOffsetDelta int32) ([]byte, error) {
	at := len(dst)
	dst = append(dst, b.raw[:HeaderSize]...)
	attributes := b.attributes()
	if count == 0 { // as the log cleaner leaves one
		attributes &^= codecBits
		binary.BigEndian.PutUint16(dst[at+attributesAt:], attributes)
	}
	dst, err := compress(dst, records, codec(attributes&codecBits))
	if err != nil {
		return nil, err
	}
	out := dst[at:]
	if len(out) > MaxDecompressed+HeaderSize {
		return nil, ErrTooLarge
	}
	binary.BigEndian.PutUint32(out[lengthAt:], uint32(len(out)-afterLength))     // #nosec G115 -- checked above
	binary.BigEndian.PutUint32(out[lastOffsetDeltaAt:], uint32(lastOffsetDelta)) // #nosec G115 -- as Kafka writes it
	binary.BigEndian.PutUint32(out[countAt:], uint32(count))                     // #nosec G115 -- as Kafka writes it
	binary.BigEndian.PutUint32(out[crcAt:], crc32.Checksum(out[attributesAt:], castagnoli))
	return dst, nil
}
