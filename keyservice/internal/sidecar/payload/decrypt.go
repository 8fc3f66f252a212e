// Decrypting the batches of one partition.

package payload

import (
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
func takeApart(data []byte, from int64, need *needed) *partition {
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
			if one.records, err = batch.Records(); err == nil {
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
	*Handler

	values    decryptor.Reader
	plainErr  error
	memory    []byte
	room      *int // bytes for what is delivered of a response
	delivered int
}

func (h *Handler) reader(readable *keys.Readable, room *int) *reader {
	given := func(kid datakey.ID) (string, *datakey.Key, error) {
		k, there := readable.Keys[kid]
		if !there {
			return "", nil, refusal.New(refusal.Internal, "the key was not asked for")
		}
		return k.Scope, k.Key, k.Err
	}
	return &reader{Handler: h, plainErr: readable.PlainErr, memory: []byte{}, room: room, values: decryptor.Reader{
		Keys: given, AcceptPlaintext: readable.AcceptPlaintext, MaxPlaintext: h.options.MaxPlaintext, Ciphers: h.ciphers,
	}}
}

// read gives the batches up to the first record that must not pass, and why that must not.
func (r *reader) read(p *partition) ([]byte, error) {
	out := []byte{}
	for _, batch := range p.batches {
		if *r.room <= 0 {
			return out, errFull
		}
		before := len(out)
		var err error
		if batch.Control() {
			out = append(out, batch.Raw()...)
		} else {
			out, err = r.batch(out, batch, p.from)
		}
		if *r.room -= len(out) - before; err != nil {
			return out, err
		}
	}
	return out, p.err
}

// batch appends one. An error stands for the record at which it ends early; without a record before that, nothing is appended.
func (r *reader) batch(dst []byte, b opened, from int64) ([]byte, error) {
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

// record decrypts one in place, or does what the failure action says. keep is false for one that is skipped.
func (r *reader) record(one *recordbatch.Record) (keep bool, err error) {
	if r.options.Action == Mark {
		one.SetHeader(errorHeader, nil) // only our own word counts
	}
	value, err := r.value(one)
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
		r.numbers.failures.WithLabelValues(string(code)).Inc()
		r.numbers.skipped.Inc()
		return false, nil
	case r.options.Action == Mark && code != decryptor.PlaintextRejected: // [CL-KAF-025]
		one.SetHeader(errorHeader, &recordbatch.Header{Name: errorHeader, Value: []byte(code)})
		r.numbers.failures.WithLabelValues(string(code)).Inc()
		r.numbers.marked.Inc()
		return true, nil
	}
	return false, err
}

// value gives the plaintext; it holds until the next one is read.
func (r *reader) value(one *recordbatch.Record) ([]byte, error) {
	plain := one.Value != nil && !envelope.Is(one.Value)
	if plain && r.plainErr != nil {
		return nil, r.plainErr
	}
	value, err := r.values.ReadInto(r.memory, one.Value, decryptor.RecordKey{Known: true, Bytes: one.Key})
	switch {
	case err != nil || one.Value == nil:
	case plain:
		r.numbers.plaintext.Inc()
	default:
		r.numbers.decrypted.Inc()
		r.memory = value
	}
	return value, err
}

func asRefusal(err error) (*refusal.Error, bool) { return errors.AsType[*refusal.Error](err) }
