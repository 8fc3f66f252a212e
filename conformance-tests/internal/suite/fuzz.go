package suite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/reference"
)

const (
	fuzzBatch = 400
	fuzzTopic = vectorTopic
	// So that frames that grow beyond it are met.
	fuzzLimit = 4096
	// The window that every reader must have.
	mostWindow = 8 << 20
)

// runFuzz gives every driver the same mutated values, batch by batch, until the time is over. The verdict of the first driver
// that knows the operation is what the others are compared with; a batch is a case, named by its number, so that a seed and
// a name replay it.
func runFuzz(r *Run) error {
	random := r.random("fuzz")
	key, err := newDataKey(random)
	if err != nil {
		return err
	}
	if len(r.Drivers) < 2 {
		return nil // nobody to compare with
	}
	until := time.Now().Add(r.FuzzTime)
	for number := 0; time.Now().Before(until); number++ {
		if number%10 == 0 {
			r.Progress("fuzz: %d inputs, %s left", number*fuzzBatch, time.Until(until).Round(time.Second))
		}
		batch, err := fuzzInputs(rand.New(rand.NewPCG(r.Seed, uint64(number))), key)
		if err != nil {
			return err
		}
		r.Service.Play(holder(fuzzTopic, key))
		if err := r.compare(fmt.Sprintf("batch-%05d", number), batch); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) compare(name string, batch [][]byte) error {
	expected, err := r.verdicts(r.Drivers[0], batch)
	if err != nil {
		return err
	}
	for _, d := range r.Drivers[1:] {
		r.check("fuzz", name, d, nil, func() error {
			got, err := r.verdicts(d, batch)
			if err != nil {
				return err
			}
			for i := range batch {
				if got[i] != expected[i] && !bothOfCompression(got[i], expected[i]) {
					return fmt.Errorf("%s says %.100s, %s says %.100s; input %x", r.Drivers[0].Label, expected[i], d.Label, got[i], batch[i])
				}
			}
			return nil
		})
	}
	return nil
}

// bothOfCompression: a frame that is both broken and too long ends in either code (envelope.md).
func bothOfCompression(a, b string) bool {
	codes := []string{"decompression-failed", "plaintext-too-long"}
	return slices.Contains(codes, a) && slices.Contains(codes, b)
}

// verdicts are codes, or the plaintext.
func (r *Run) verdicts(d *Driver, batch [][]byte) ([]string, error) {
	if err := r.open(d, "cipherlane.max.plaintext.bytes", strconv.Itoa(fuzzLimit)); err != nil {
		return nil, err
	}
	outcomes, err := decryptAll(d, fuzzTopic, batch)
	if err != nil {
		return nil, err
	}
	verdicts := make([]string, len(batch))
	for i, outcome := range outcomes {
		code, err := codeOf(asError(outcome.Error))
		if err != nil {
			return nil, err
		}
		verdicts[i] = code
		if code == "ok" {
			verdicts[i] += fmt.Sprintf(" %x", []byte(outcome.Value))
		}
	}
	return verdicts, nil
}

func fuzzInputs(random *rand.Rand, key dataKey) ([][]byte, error) {
	batch := make([][]byte, fuzzBatch)
	for i := range batch {
		value, err := sound(random, key)
		if err != nil {
			return nil, err
		}
		for range random.IntN(3) {
			value = mutate(random, value)
		}
		batch[i] = value
	}
	return batch, nil
}

// sound is a value that was made as a writer makes it, and in half of all cases by a writer with a broken zstd.
func sound(random *rand.Rand, key dataKey) ([]byte, error) {
	plaintext := randomBytes(random, random.IntN(64))
	compressed := random.IntN(2) == 0
	if compressed {
		plaintext = brokenFrame(random)
	}
	return reference.Seal(key.key, fuzzTopic, nil, compressed, plaintext)
}

// brokenFrame is a frame that was mutated up to three times; then it has a checksum, because what is broken inside a block and
// has none is read by libzstd 1.5.4 (Debian 12) and refused by newer libraries. One that asks for a window of more than 8 MiB, or for a smaller one
// than it was made with, is left out: some readers refuse it and some do not, as envelope.md lets them.
func brokenFrame(random *rand.Rand) []byte {
	for {
		mutations := random.IntN(4)
		value := frame(random, mutations > 0 || random.IntN(2) == 0)
		var made, header zstd.Header
		_ = made.Decode(value) // nothing, of which no frame is made, has no window
		for range mutations {
			value = mutate(random, value)
		}
		if header.Decode(value) != nil || (header.WindowSize <= mostWindow && header.WindowSize >= made.WindowSize) {
			return value
		}
	}
}

// frame is one sound zstd frame, of something that may be longer than the limit.
func frame(random *rand.Rand, checksum bool) []byte {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(checksum), zstd.WithSingleSegment(random.IntN(2) == 0))
	if err != nil {
		panic(err) // the options are good
	}
	content := make([]byte, random.IntN(2*fuzzLimit))
	for i := range content {
		content[i] = byte(random.IntN(4))
	}
	return encoder.EncodeAll(content, nil)
}

func mutate(random *rand.Rand, value []byte) []byte {
	value = slices.Clone(value)
	if len(value) == 0 {
		return append(value, byte(random.Uint32()))
	}
	place := random.IntN(len(value))
	if random.IntN(2) == 0 {
		place = random.IntN(min(len(value), 24)) // the header is where parsers differ
	}
	switch random.IntN(7) {
	case 0:
		value[place] ^= 1 << random.IntN(8)
	case 1:
		value[place] = byte(random.Uint32())
	case 2:
		value = value[:place]
	case 3:
		value = append(value, randomBytes(random, 1+random.IntN(20))...)
	case 4:
		value = slices.Insert(value, place, randomBytes(random, 1+random.IntN(4))...)
	case 5:
		value = slices.Delete(value, place, min(len(value), place+1+random.IntN(4)))
	case 6:
		value = slices.Concat(value, value)
	}
	return value
}
