// Records within a batch.

package recordbatch

import (
	"encoding/binary"
	"iter"
	"math"
)

// Record is one of a batch. Its parts point into the batch's records and stay as they are but for what is set anew.
type Record struct {
	OffsetDelta int32
	Key         []byte // nil for null
	Value       []byte // nil for null

	head    []byte // attributes, deltas of time and offset, size of the key, key
	headers []byte // their number, and they
}

// Header is one of a record's.
type Header struct {
	Name  string
	Value []byte // nil for null
}

// All gives the records of a batch in turn, or ErrCorrupt once. There must be count of them, and nothing else.
func All(records []byte, count int32) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for range count {
			size, body, ok := varint(records)
			if !ok || size < 0 || int(size) > len(body) {
				yield(Record{}, ErrCorrupt)
				return
			}
			r, ok := parse(body[:size:size])
			if !ok {
				yield(Record{}, ErrCorrupt)
				return
			}
			if !yield(r, nil) {
				return
			}
			records = body[size:]
		}
		if len(records) != 0 {
			yield(Record{}, ErrCorrupt)
		}
	}
}

func parse(body []byte) (Record, bool) {
	var r Record
	if len(body) < 1 {
		return r, false
	}
	_, n := binary.Varint(body[1:]) // the delta of the time, which may be any
	if n <= 0 {
		return r, false
	}
	delta, rest, ok := varint(body[1+n:])
	if !ok || delta < 0 {
		return r, false
	}
	r.OffsetDelta = delta
	if r.Key, rest, ok = nullable(rest); !ok {
		return r, false
	}
	r.head = body[:len(body)-len(rest)]
	if r.Value, rest, ok = nullable(rest); !ok {
		return r, false
	}
	r.headers = rest
	return r, wholeHeaders(rest)
}

// varint reads Kafka's varint of 32 bits.
func varint(data []byte) (value int32, rest []byte, ok bool) {
	v, n := binary.Varint(data)
	if n <= 0 || n > binary.MaxVarintLen32 || v < math.MinInt32 || v > math.MaxInt32 {
		return 0, nil, false
	}
	return int32(v), data[n:], true
}

// nullable reads bytes behind their size; -1 is null.
func nullable(data []byte) (value, rest []byte, ok bool) {
	size, rest, ok := varint(data)
	switch {
	case !ok || size < -1 || int(size) > len(rest):
		return nil, nil, false
	case size == -1:
		return nil, rest, true
	}
	return rest[:size:size], rest[size:], true
}

// wholeHeaders tells whether data is headers and nothing else.
func wholeHeaders(data []byte) bool {
	count, rest, ok := varint(data)
	if !ok || count < 0 {
		return false
	}
	for range count {
		var name []byte
		if name, rest, ok = nullable(rest); !ok || name == nil {
			return false
		}
		if _, rest, ok = nullable(rest); !ok {
			return false
		}
	}
	return len(rest) == 0
}

// SetHeader gives the record other headers: its own but those named name, and more, which may be nil.
func (r *Record) SetHeader(name string, more *Header) {
	count, rest, _ := varint(r.headers)
	kept, left := make([]byte, 0, len(r.headers)+len(name)), int32(0)
	for range count {
		at := rest
		var of []byte
		of, rest, _ = nullable(rest)
		_, rest, _ = nullable(rest)
		if string(of) != name {
			kept = append(kept, at[:len(at)-len(rest)]...)
			left++
		}
	}
	if more != nil {
		kept = appendNullable(appendNullable(kept, []byte(more.Name)), more.Value)
		left++
	}
	r.headers = append(binary.AppendVarint(nil, int64(left)), kept...)
}

func appendNullable(dst, data []byte) []byte {
	if data == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(data))), data...)
}

// Append appends the record as it stands in a batch.
func (r *Record) Append(dst []byte) []byte {
	dst = r.AppendHead(dst, len(r.Value))
	return append(append(dst, r.Value...), r.headers...)
}

// AppendHead appends what comes before a value of size bytes, for one that is written in place; [Record.AppendTail] ends the record.
// A null value has no bytes but is told by Value.
func (r *Record) AppendHead(dst []byte, size int) []byte {
	var prefix [binary.MaxVarintLen64]byte
	n := binary.PutVarint(prefix[:], int64(size))
	if r.Value == nil {
		n = binary.PutVarint(prefix[:], -1)
	}
	dst = binary.AppendVarint(dst, int64(len(r.head)+n+size+len(r.headers)))
	return append(append(dst, r.head...), prefix[:n]...)
}

// AppendTail appends what comes behind the value.
func (r *Record) AppendTail(dst []byte) []byte { return append(dst, r.headers...) }
