package recordbatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var codecNames = map[codec]string{none: "none", gzipped: "gzip", snappy: "snappy", lz4ed: "lz4", zstded: "zstd"}

// written makes a batch as a client would, by franz-go.
func written(t testing.TB, c codec, attributes int16, values ...[]byte) []byte {
	t.Helper()
	var records []byte
	for i, value := range values {
		records = append(records, writtenRecord(int32(i), value)...)
	}
	return framed(t, c, attributes, int32(len(values)), records)
}

func writtenRecord(i int32, value []byte) []byte {
	r := kmsg.Record{
		TimestampDelta64: int64(i) * 1000, OffsetDelta: i, Key: fmt.Appendf(nil, "key %d", i), Value: value,
		Headers: []kmsg.Header{{Key: "a", Value: []byte("1")}, {Key: "none"}, {Key: "a", Value: []byte{}}},
	}
	if i%2 == 1 {
		r.Key = nil
	}
	r.Length = int32(len(r.AppendTo(nil)) - 1) // one byte for a length of 0
	return r.AppendTo(nil)
}

func framed(t testing.TB, c codec, attributes int16, count int32, records []byte) []byte {
	t.Helper()
	packed, err := compress(nil, records, c)
	if err != nil {
		t.Fatal(err)
	}
	b := kmsg.RecordBatch{
		Length: int32(HeaderSize - afterLength + len(packed)), PartitionLeaderEpoch: -1, Magic: 2, Attributes: attributes | int16(c),
		LastOffsetDelta: count - 1, FirstTimestamp: 1700000000000, MaxTimestamp: 1700000000999, ProducerID: 77, ProducerEpoch: 3,
		FirstSequence: 123, NumRecords: count, Records: packed,
	}
	return sealed(b.AppendTo(nil))
}

// sealed sets the CRC of a batch.
func sealed(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[crcAt:], crc32.Checksum(raw[attributesAt:], castagnoli))
	return raw
}

var sampleValues = [][]byte{[]byte("first"), nil, {}, bytes.Repeat([]byte("long "), 1000)}

// rewritten replaces every value that is not null.
func rewritten(t testing.TB, raw []byte, change func([]byte) []byte) []byte {
	t.Helper()
	b, rest, err := Next(raw)
	if err != nil || len(rest) != 0 {
		t.Fatal(err, len(rest))
	}
	records, err := b.Decompressed(MaxDecompressed)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for r, err := range All(records, b.Count()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Value == nil {
			out = r.Append(out)
			continue
		}
		value := change(r.Value)
		out = r.AppendTail(append(r.AppendHead(out, len(value)), value...))
	}
	again, err := b.Append([]byte("before"), out, b.Count(), b.LastOffsetDelta())
	if err != nil {
		t.Fatal(err)
	}
	return again[len("before"):]
}

// read gives the records as franz-go reads them.
func read(t *testing.T, raw []byte) []*kgo.Record {
	t.Helper()
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = raw
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true}, &p, kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	return got.Records
}

// [CL-SDC-103]
func TestEverythingButTheValuesStays(t *testing.T) {
	for c, name := range codecNames {
		t.Run(name, func(t *testing.T) {
			raw := written(t, c, 0x10, sampleValues...) // in a transaction
			again := rewritten(t, raw, func(v []byte) []byte { return append([]byte("<"), append(v, '>')...) })
			for _, field := range [][2]int{{0, lengthAt}, {afterLength, crcAt}, {attributesAt, HeaderSize}} {
				if !bytes.Equal(raw[field[0]:field[1]], again[field[0]:field[1]]) {
					t.Errorf("bytes %d to %d: %x, were %x", field[0], field[1], again[field[0]:field[1]], raw[field[0]:field[1]])
				}
			}
			before, after := read(t, raw), read(t, again)
			if len(before) != len(sampleValues) || len(after) != len(before) {
				t.Fatalf("%d records, were %d", len(after), len(before))
			}
			for i, was := range before {
				compare(t, was, after[i])
			}
		})
	}
}

func compare(t *testing.T, was, is *kgo.Record) {
	t.Helper()
	want := was.Value
	if want != nil {
		want = append([]byte("<"), append(bytes.Clone(want), '>')...)
	}
	same := bytes.Equal(is.Value, want) && (is.Value == nil) == (want == nil) && bytes.Equal(is.Key, was.Key) && (is.Key == nil) == (was.Key == nil)
	if !same || is.Offset != was.Offset || !is.Timestamp.Equal(was.Timestamp) || is.Attrs != was.Attrs || is.ProducerID != was.ProducerID {
		t.Errorf("%+v, was %+v", is, was)
	}
	if fmt.Sprint(is.Headers) != fmt.Sprint(was.Headers) {
		t.Errorf("headers %v, were %v", is.Headers, was.Headers)
	}
}

func TestHeadersAreReplacedByName(t *testing.T) {
	records := writtenRecord(0, []byte("v"))
	for r := range All(records, 1) {
		r.SetHeader("a", &Header{Name: "a", Value: []byte("new")})
		raw := framed(t, none, 0, 1, r.Append(nil))
		got := read(t, raw)[0]
		if len(got.Headers) != 2 || got.Headers[0].Key != "none" || got.Headers[0].Value != nil || string(got.Headers[1].Value) != "new" {
			t.Errorf("%v", got.Headers)
		}
		r.SetHeader("a", nil)
		r.SetHeader("none", nil)
		if got := read(t, framed(t, none, 0, 1, r.Append(nil)))[0]; len(got.Headers) != 0 || string(got.Value) != "v" {
			t.Errorf("%v", got)
		}
	}
}

func TestABatchWithoutRecordsIsAsTheLogCleanerLeavesIt(t *testing.T) {
	b, _, err := Next(written(t, gzipped, 0, sampleValues...))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Append(nil, nil, 0, b.LastOffsetDelta())
	if err != nil || len(raw) != HeaderSize {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	empty, _, err := Next(raw)
	if err != nil || empty.Count() != 0 || empty.LastOffsetDelta() != 3 {
		t.Fatalf("%v %v", empty, err)
	}
	if records, err := empty.Decompressed(MaxDecompressed); err != nil || len(records) != 0 {
		t.Fatalf("%x %v", records, err)
	}
}

// whole goes over a batch as the payload handler does.
func whole(data []byte) error {
	b, rest, err := Next(data)
	switch {
	case err != nil:
		return err
	case b.Raw() == nil || len(rest) > 0:
		return errors.New("not whole")
	}
	records, err := b.Decompressed(MaxDecompressed)
	if err != nil {
		return err
	}
	var out []byte
	for r, err := range All(records, b.Count()) {
		if err != nil {
			return err
		}
		r.SetHeader("a", nil)
		out = r.Append(out)
	}
	_, err = b.Append(nil, out, b.Count(), b.LastOffsetDelta())
	return err
}

// [CL-SDC-104]
func TestEveryCutAndFlippedBitIsRefused(t *testing.T) {
	for c, name := range codecNames {
		t.Run(name, func(t *testing.T) {
			raw := written(t, c, 0, sampleValues[:3]...)
			if err := whole(raw); err != nil {
				t.Fatal(err)
			}
			for n := range raw {
				if whole(raw[:n]) == nil {
					t.Errorf("cut to %d bytes", n)
				}
			}
			for bit := range 8 * len(raw) {
				flipped := bytes.Clone(raw)
				flipped[bit/8] ^= 1 << (bit % 8)
				covered := bit/8 >= attributesAt || bit/8 >= magicAt && bit/8 < attributesAt || bit/8 >= lengthAt && bit/8 < afterLength
				if covered && whole(flipped) == nil {
					t.Errorf("bit %d was passed over", bit)
				}
				// With the CRC set anew it is a hostile client's: anything but a crash or endless memory.
				if bit/8 >= attributesAt {
					_ = whole(sealed(flipped))
				}
			}
		})
	}
}

// [CL-SDC-104]
func TestHostileBatches(t *testing.T) {
	one := writtenRecord(0, []byte("v"))
	for name, raw := range map[string][]byte{
		"fewer records than told":      framed(t, none, 0, 2, one),
		"more records than told":       framed(t, none, 0, 1, append(bytes.Clone(one), writtenRecord(1, nil)...)),
		"bytes behind the records":     framed(t, none, 0, 1, append(bytes.Clone(one), 0)),
		"a record count of 2^31 - 1":   framed(t, none, 0, 1<<31-1, one),
		"a negative record count":      framed(t, none, 0, -1, one),
		"no records where one is told": framed(t, none, 0, 1, nil),
		"a negative record size":       framed(t, none, 0, 1, []byte{1, 0, 0, 0, 0, 0, 0, 0}),
		"a value of size -2":           framed(t, none, 0, 1, []byte{14, 0, 0, 0, 1, 3, 0, 0}),
		"a key beyond the record":      framed(t, none, 0, 1, []byte{14, 0, 0, 0, 100, 1, 0, 0}),
		"headers of count -1":          framed(t, none, 0, 1, []byte{12, 0, 0, 0, 1, 1, 1}),
		"headers of count 2^31 - 1":    framed(t, none, 0, 1, []byte{20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f}),
		"a header without a name":      framed(t, none, 0, 1, []byte{16, 0, 0, 0, 1, 1, 2, 1, 1}),
		"a varint without an end":      framed(t, none, 0, 1, []byte{16, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}),
	} {
		if err := whole(raw); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []uint16{5, 6, 7} {
		raw := written(t, none, int16(c), []byte("v"))
		if err := whole(raw); !errors.Is(err, ErrCodec) {
			t.Errorf("codec %d: %v", c, err)
		}
	}
}

// [CL-SDC-105]
func TestOldFormatsAreRefused(t *testing.T) {
	for _, old := range []byte{0, 1} {
		message := append(make([]byte, 8), 0, 0, 0, 22, 1, 2, 3, 4, old, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 8, 'p', 'l', 'a', 'i', 'n', 't', 'x', 't')
		for n := magicAt + 1; n <= len(message); n++ {
			if _, _, err := Next(message[:n]); !errors.Is(err, ErrFormat) {
				t.Errorf("format %d, %d bytes: %v", old, n, err)
			}
		}
	}
}

// [CL-SDC-106]
func TestBombsAreBounded(t *testing.T) {
	zeros := make([]byte, MaxDecompressed+1)
	for c, name := range codecNames {
		if c == none {
			continue
		}
		if err := whole(framed(t, c, 0, 1, zeros)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	claim := binary.AppendUvarint(nil, 1<<32-1) // a Snappy block that claims 4 GiB
	packed := written(t, none, int16(snappy), nil)[:HeaderSize]
	packed = append(packed, claim...)
	binary.BigEndian.PutUint32(packed[lengthAt:], uint32(len(packed)-afterLength))
	if err := whole(sealed(packed)); err == nil {
		t.Error("a claim was believed")
	}
}

// [CL-SDC-106] A caller that has less memory is told so, and little is spent on finding out.
func TestDecompressedIntoLess(t *testing.T) {
	const size = 2 << 20
	raw := map[codec][]byte{}
	for c := range codecNames {
		raw[c] = framed(t, c, 0, 1, make([]byte, size))
	}
	for c, name := range codecNames {
		b, _, err := Next(raw[c])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := b.Decompressed(size); err != nil || len(got) != size {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if c == none {
			if got, err := b.Decompressed(0); err != nil || len(got) != size { // takes none
				t.Errorf("%d bytes, %v", len(got), err)
			}
			continue
		}
		for _, most := range []int{size - 1, size / 2, 100, 0, -1} {
			if _, err := b.Decompressed(most); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s into %d bytes: %v", name, most, err)
			}
		}
		const rounds = 8
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			_, _ = b.Decompressed(size / 64)
		}
		runtime.ReadMemStats(&after)
		own := uint64(0)
		if c == lz4ed {
			own = 2 * 4 << 20 // of its blocks
		}
		if spent := (after.TotalAlloc - before.TotalAlloc) / rounds; spent > own+size/2 {
			t.Errorf("%s: %d bytes were taken where %d are there", name, spent, size/64)
		}
	}
}

// What is claimed to be compressed is found without being looked at, in whatever bytes there are.
func TestAnyCompressed(t *testing.T) {
	plain, zipped := framed(t, none, 0, 1, make([]byte, 100)), framed(t, gzipped, 0, 1, make([]byte, 100))
	long := bytes.Clone(zipped)
	binary.BigEndian.PutUint32(long[lengthAt:], 1<<32-1)
	passed := bytes.Clone(plain)
	binary.BigEndian.PutUint32(passed[lengthAt:], 1<<31)
	for name, c := range map[string]struct {
		data []byte
		any  bool
	}{
		"none":               {plain, false},
		"the only one":       {zipped, true},
		"the second":         {append(bytes.Clone(plain), zipped...), true},
		"behind half of one": {plain[:30], false},
		"nothing":            {nil, false},
		"zeros":              {make([]byte, 1<<20), false},
		"a long one":         {long, true},
		"behind a long one":  {append(passed, zipped...), false},
		"half of one":        {zipped[:HeaderSize-1], false},
	} {
		if got := AnyCompressed(c.data); got != c.any {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// [CL-SDC-104]
func FuzzBatch(f *testing.F) {
	for c := range codecNames {
		f.Add(written(f, c, 0, sampleValues[:3]...))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		_ = whole(data)
		if len(data) >= HeaderSize { // with length, format and CRC right, the records are looked at
			binary.BigEndian.PutUint32(data[lengthAt:], uint32(len(data)-afterLength))
			data[magicAt] = magic
			_ = whole(sealed(data))
		}
	})
}
