// Decrypting the batches of one partition.

package payload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/decryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/recordbatch"
)

// errorHeader is that of a marked record [CL-KAF-024].
const errorHeader = "cipherlane.error"

// partition is what the broker gave of one.
type partition struct {
	from    int64 // the offset that the client reads from
	batches []opened
	err     error // why nothing behind the batches was read
}

type opened struct {
	recordbatch.Batch

	records []byte
}

// needed is what the records of a topic need to be read.
type needed struct {
	kids  map[datakey.ID]struct{}
	plain bool
	held  int // bytes that were decompressed
}

// maxHeld is how many bytes are decompressed at a time, but for the batch with which there are more; maxDelivered likewise of a response. What
// is left out the client fetches again.
const (
	maxHeld      = recordbatch.MaxDecompressed
	maxDelivered = maxRequest
)

// errFull ends a batch before a record that finds no room; the client reads on from there.
var errFull = errors.New("what is decrypted finds no room")

func (n *needed) list() []datakey.ID {
	kids := make([]datakey.ID, 0, len(n.kids))
	for kid := range n.kids {
		kids = append(kids, kid)
	}
	return kids
}

func (n *needed) add(value []byte) {
	if value == nil {
		return
	}
	if !envelope.Is(value) {
		n.plain = true
	} else if e, err := envelope.Parse(value); err == nil {
		n.kids[e.Kid] = struct{}{}
	}
}

// takeApart goes over the whole batches in data, and leaves out the part of one at its end, and what would take too much memory. What is
// before the client's offset it did not ask for: brokers give whole batches.
func (f *fetching) takeApart(ctx context.Context, data []byte, from int64, need *needed) *partition {
	p := &partition{from: from}
	for len(data) > 0 && need.held < maxHeld {
		batch, rest, err := recordbatch.Next(data)
		if err != nil || batch.Raw() == nil {
			p.err = err
			return p
		}
		data = rest
		one := opened{Batch: batch}
		if !batch.Control() {
			if one.records, err = f.memory.decompressed(ctx, batch); err == nil {
				err = one.need(from, need)
			}
			if batch.Compressed() {
				need.held += len(one.records)
			}
			if err != nil {
				p.err = fmt.Errorf("the batch at offset %d: %w", batch.BaseOffset(), err)
				return p
			}
		}
		p.batches = append(p.batches, one)
	}
	return p
}

func (o *opened) need(from int64, need *needed) error {
	for r, err := range recordbatch.All(o.records, o.Count()) {
		if err != nil {
			return err
		}
		if o.BaseOffset()+int64(r.OffsetDelta) >= from {
			need.add(r.Value)
		}
	}
	return nil
}

// reader reads one partition.
type reader struct {
	*fetching

	values    decryptor.Reader
	plainErr  error
	value     []byte // memory of the last one
	counted   int    // bytes of it
	lasting   int    // bytes of what was read, here and in the response
	delivered int

	decrypted, plaintext, skipped, marked int
	failures                              map[refusal.Code]int
}

func (f *fetching) reader(readable *keys.Readable) *reader {
	given := func(kid datakey.ID) (string, *datakey.Key, error) {
		k, there := readable.Keys[kid]
		if !there {
			return "", nil, refusal.New(refusal.Internal, "the key was not asked for")
		}
		return k.Scope, k.Key, k.Err
	}
	return &reader{
		fetching: f, plainErr: readable.PlainErr, value: []byte{}, failures: map[refusal.Code]int{},
		values: decryptor.Reader{Keys: given, AcceptPlaintext: readable.AcceptPlaintext, Ciphers: f.ciphers},
	}
}

// read gives the batches up to the first record that must not pass, and why that must not.
//
// Errors: errNoRoom, errFull, and those of records and batches.
func (r *reader) read(p *partition) ([]byte, error) {
	defer func() { r.memory.give(r.counted) }()
	out := []byte{}
	for _, batch := range p.batches {
		if r.room <= 0 {
			return out, errFull
		}
		before := len(out)
		var err error
		if batch.Control() {
			out = append(out, batch.Raw()...)
		} else {
			out, err = r.batch(out, batch, p.from)
		}
		if errors.Is(err, errNoRoom) {
			return nil, err
		}
		if taken := r.keep(len(out) - before); taken != nil {
			return nil, taken
		}
		if err != nil {
			return out, err
		}
	}
	return out, p.err
}

// keep counts bytes of what was read.
func (r *reader) keep(bytes int) error {
	err := r.memory.takeNow(2 * bytes)
	if err == nil {
		r.room -= bytes
		r.lasting += bytes
	}
	return err
}

// undo gives back what was counted of a partition that is read again.
func (r *reader) undo() {
	r.memory.give(2 * r.lasting)
	r.room += r.lasting
}

// tell counts what was met.
func (r *reader) tell() {
	n := r.numbers
	n.decrypted.Add(float64(r.decrypted))
	n.plaintext.Add(float64(r.plaintext))
	n.skipped.Add(float64(r.skipped))
	n.marked.Add(float64(r.marked))
	for code, times := range r.failures {
		n.failures.WithLabelValues(string(code)).Add(float64(times))
	}
}

// batch appends one. An error stands for the record at which it ends early; without a record before that, nothing is appended.
func (r *reader) batch(dst []byte, b opened, from int64) ([]byte, error) {
	taken := 0
	defer func() { r.memory.give(taken) }()
	records := make([]byte, 0, len(b.records))
	count, last := int32(0), b.LastOffsetDelta()
	var stop error
	for one, err := range recordbatch.All(b.records, b.Count()) {
		if err != nil {
			return dst, err
		}
		offset := b.BaseOffset() + int64(one.OffsetDelta)
		if offset < from {
			continue
		}
		keep, err := r.record(&one)
		if err != nil {
			stop, last = fmt.Errorf("offset %d: %w", offset, err), one.OffsetDelta-1
			break
		}
		if !keep {
			continue
		}
		if count > 0 && len(records)+len(one.Value) > recordbatch.MaxDecompressed {
			stop, last = errFull, one.OffsetDelta-1
			break
		}
		if err := r.grow(&taken, len(records)+len(one.Value), len(b.records)); err != nil {
			return dst, err
		}
		records = one.Append(records)
		count++
	}
	if stop != nil && count == 0 {
		return dst, stop
	}
	out, err := b.Append(dst, records, count, last)
	if err != nil {
		return dst, errors.Join(err, stop)
	}
	r.delivered += int(count)
	return out, stop
}

// grow takes memory for records of that size, and for what they are compressed to; usually for all of a batch at once.
func (r *reader) grow(taken *int, size, usual int) error {
	more := 2*size - *taken
	if more <= 0 {
		return nil
	}
	more = max(more, 2*usual)
	err := r.memory.takeNow(more)
	if err == nil {
		*taken += more
	}
	return err
}

// record decrypts one in place, or does what the failure action says. keep is false for one that is skipped.
func (r *reader) record(one *recordbatch.Record) (keep bool, err error) {
	if r.options.Action == Mark {
		one.SetHeader(errorHeader, nil) // only our own word counts
	}
	value, err := r.open(one)
	if err == nil {
		one.Value = value
		return true, nil
	}
	code := codeOf(err)
	if !slices.Contains(ofRecord, code) {
		return false, err
	}
	switch {
	case r.options.Action == Skip:
		r.failures[code]++
		r.skipped++
		return false, nil
	case r.options.Action == Mark && code != decryptor.PlaintextRejected: // [CL-KAF-025]
		one.SetHeader(errorHeader, &recordbatch.Header{Name: errorHeader, Value: []byte(code)})
		r.failures[code]++
		r.marked++
		return true, nil
	}
	return false, err
}

// open gives the plaintext of a record; it holds until the next one is read.
func (r *reader) open(one *recordbatch.Record) ([]byte, error) {
	plain := one.Value != nil && !envelope.Is(one.Value)
	if plain && r.plainErr != nil {
		return nil, r.plainErr
	}
	if err := r.count(len(one.Value)); err != nil {
		return nil, err
	}
	value, err := r.readWithin(one)
	switch {
	case err != nil || one.Value == nil:
	case plain:
		r.plaintext++
	default:
		r.decrypted++
		r.value = value
		err = r.count(cap(value))
	}
	return value, err
}

// readWithin decompresses into the share, and outgrows it only for a value that turns out to be longer.
func (r *reader) readWithin(one *recordbatch.Record) ([]byte, error) {
	key := decryptor.RecordKey{Known: true, Bytes: one.Key}
	r.values.MaxPlaintext = min(r.options.MaxPlaintext, len(one.Value)+r.memory.left())
	value, err := r.values.ReadInto(r.value, one.Value, key)
	if err == nil || codeOf(err) != decryptor.PlaintextTooLong || r.values.MaxPlaintext == r.options.MaxPlaintext {
		return value, err
	}
	if err := r.memory.outgrowNow(); err != nil {
		return nil, err
	}
	r.values.MaxPlaintext = r.options.MaxPlaintext
	return r.values.ReadInto(r.value, one.Value, key)
}

// count takes what the memory of a value is more than that of those before.
func (r *reader) count(bytes int) error {
	if bytes <= r.counted {
		return nil
	}
	err := r.memory.takeNow(bytes - r.counted)
	if err == nil {
		r.counted = bytes
	}
	return err
}

func asRefusal(err error) (*refusal.Error, bool) { return errors.AsType[*refusal.Error](err) }
