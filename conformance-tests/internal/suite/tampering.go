package suite

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/reference"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
)

const (
	tamperedRecords = 20
	tamperedMost    = 120 // bytes of plaintext
	forgedPairs     = 10
)

// dataKey is a data key of this run.
type dataKey struct {
	key []byte
	kid string
}

func newDataKey(random *rand.Rand) (dataKey, error) {
	key := randomBytes(random, 32)
	kid, err := reference.KeyID(key)
	return dataKey{key, kid}, err
}

// holder is a key service that holds keys of one scope.
func holder(scope string, held ...dataKey) scripted.Script {
	return func(call scripted.Call) scripted.Reply {
		var entries []map[string]any
		for _, kid := range call.Kids {
			i := slices.IndexFunc(held, func(k dataKey) bool { return k.kid == kid })
			if i < 0 {
				entries = append(entries, scripted.KidProblem(kid, "key-unknown"))
			} else {
				entries = append(entries, scripted.Key(scope, kid, held[i].key))
			}
		}
		return scripted.DecryptionKeys("reject", entries)
	}
}

// changed is a value with the verdict that every decrypter must come to.
type changed struct {
	name  string
	value []byte
	code  string
}

func runTampering(r *Run) error {
	random := r.random("tampering")
	key, err := newDataKey(random)
	if err != nil {
		return err
	}
	for _, d := range r.Drivers {
		r.Progress("tampering: %s", d.Label)
		random := r.random("tampering records") // the same records for every driver
		for i := range tamperedRecords {
			plaintext := randomBytes(random, random.IntN(tamperedMost))
			envelope, err := reference.Seal(key.key, vectorTopic, nil, false, plaintext)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("record-%02d-every-bit-and-cut", i)
			r.check("tampering", name, d, nil, func() error {
				r.Service.Play(holder(vectorTopic, key))
				return r.judge(d, append(everyBit(envelope), everyCut(envelope)...))
			})
		}
		if err := r.tamperingCases(d, random); err != nil {
			return err
		}
	}
	return nil
}

// judge has a driver read all values and compares the verdicts.
func (r *Run) judge(d *Driver, values []changed) error {
	if err := r.open(d); err != nil {
		return err
	}
	batch := make([][]byte, len(values))
	for i, value := range values {
		batch[i] = value.value
	}
	outcomes, err := decryptAll(d, vectorTopic, batch)
	if err != nil {
		return err
	}
	for i, value := range values {
		if err := verdict(value.code, nil, false, outcomes[i].Value, asError(outcomes[i].Error)); err != nil {
			return fmt.Errorf("%s: %w; value %s", value.name, err, short(value.value))
		}
	}
	return nil
}

func everyBit(envelope []byte) []changed {
	var all []changed
	for bit := range 8 * len(envelope) {
		value := slices.Clone(envelope)
		value[bit/8] ^= 1 << (bit % 8)
		all = append(all, changed{fmt.Sprintf("bit %d flipped", bit), value, codeOfFlip(bit)})
	}
	return all
}

// codeOfFlip is the oracle: what a flipped bit of a sound, unbound, uncompressed envelope must end in, by its place.
func codeOfFlip(bit int) string {
	switch place := bit / 8; {
	case place < 2:
		return plaintextRejected
	case place == 2:
		return unsupportedVersion
	case place == 3 && bit%8 == 0: // marked as compressed
		return authenticationFailed
	case place == 3 && bit%8 == 2: // marked as bound, and these readers know no record key
		return "record-key-unavailable"
	case place == 3:
		return "unsupported-flags"
	case place < 20:
		return "key-unknown"
	}
	return authenticationFailed
}

func everyCut(envelope []byte) []changed {
	var all []changed
	for size := range envelope {
		code := authenticationFailed
		switch {
		case size < 2:
			code = plaintextRejected
		case size < 60:
			code = envelopeTooShort
		}
		all = append(all, changed{fmt.Sprintf("cut to %d bytes", size), envelope[:size], code})
	}
	return all
}

func (r *Run) tamperingCases(d *Driver, random *rand.Rand) error {
	key, err := newDataKey(random)
	if err != nil {
		return err
	}
	plaintext := randomBytes(random, 40)
	envelope, err := reference.Seal(key.key, vectorTopic, nil, false, plaintext)
	if err != nil {
		return err
	}
	bound, err := reference.Seal(key.key, vectorTopic, driver.Key([]byte("patient-7")), false, plaintext)
	if err != nil {
		return err
	}
	r.check("tampering", "doubled-cut-and-stripped", d, nil, func() error {
		r.Service.Play(holder(vectorTopic, key))
		return r.judge(d, reshaped(envelope))
	})
	r.check("tampering", "plaintext-injected", d, nil, func() error {
		r.Service.Play(holder(vectorTopic, key))
		return r.judge(d, injected())
	})
	r.check("tampering", "moved-to-another-topic-of-another-scope", d, nil, func() error {
		r.Service.Play(func(call scripted.Call) scripted.Reply {
			return scripted.DecryptionKeys("reject", []map[string]any{scripted.KidProblem(call.Kids[0], "scope-mismatch")})
		})
		return r.judge(d, []changed{{"moved", envelope, "scope-mismatch"}})
	})
	r.check("tampering", "moved-and-the-key-service-says-another-scope", d, nil, func() error {
		r.Service.Play(holder("payments", key))
		return r.judge(d, []changed{{"moved", envelope, authenticationFailed}})
	})
	r.check("tampering", "moved-to-another-record-key", d, []string{driver.OpOpen, driver.OpDecrypt}, func() error {
		r.Service.Play(holder(vectorTopic, key))
		return r.judgeBound(d, bound, plaintext)
	})
	for i := range forgedPairs {
		one, err := newDataKey(random)
		if err != nil {
			return err
		}
		other, err := newDataKey(random)
		if err != nil {
			return err
		}
		forged, err := reference.Collide(one.key, other.key, vectorTopic, randomBytes(random, 16*(1+i)), randomBytes(random, 24))
		if err != nil {
			return err
		}
		r.check("tampering", fmt.Sprintf("valid-under-two-keys-%02d", i), d, nil, func() error {
			return r.judgeForged(d, forged, one, other)
		})
	}
	return nil
}

func reshaped(envelope []byte) []changed {
	header, rest := envelope[:20], envelope[20:]
	older := slices.Clone(envelope)
	older[2] = 0
	return []changed{
		{"header twice", slices.Concat(header, envelope), authenticationFailed},
		{"two envelopes", slices.Concat(envelope, envelope), authenticationFailed},
		{"a byte more", slices.Concat(envelope, []byte{0}), authenticationFailed},
		{"header stripped", rest, codeOfStripped(rest)},
		{"magic stripped", envelope[2:], plaintextRejected},
		{"version 0", older, unsupportedVersion},
		{"nonce stripped", slices.Concat(header, envelope[44:]), codeOfSize(len(envelope) - 24)},
		{"tag moved to the front", slices.Concat(envelope[:44], envelope[len(envelope)-16:], envelope[44:len(envelope)-16]), authenticationFailed},
	}
}

func codeOfStripped(rest []byte) string {
	if rest[0] == 0xc1 && rest[1] == 0x9e {
		return unsupportedVersion // one nonce in 65,536
	}
	return plaintextRejected
}

func codeOfSize(size int) string {
	if size < 60 {
		return envelopeTooShort
	}
	return authenticationFailed
}

func injected() []changed {
	var all []changed
	for _, text := range []string{"", "x", "{\"amount\": 1}", "\xc1", "\x9e\xc1", "\x00\xc1\x9e\x01"} {
		all = append(all, changed{fmt.Sprintf("plaintext %q", text), []byte(text), plaintextRejected})
	}
	return all
}

func (r *Run) judgeBound(d *Driver, bound, plaintext []byte) error {
	if err := r.open(d); err != nil {
		return err
	}
	for _, key := range []struct {
		name string
		key  *driver.RecordKey
		code string
	}{
		{"its own key", driver.Key([]byte("patient-7")), "ok"},
		{"another key", driver.Key([]byte("patient-8")), authenticationFailed},
		{"a longer key", driver.Key([]byte("patient-77")), authenticationFailed},
		{"an empty key", driver.Key([]byte{}), authenticationFailed},
		{"a null key", driver.Key(nil), authenticationFailed},
		{"no key", nil, "record-key-unavailable"},
	} {
		got, err := decrypt(d, vectorTopic, bound, key.key)
		if err := verdict(key.code, plaintext, true, got, err); err != nil {
			return fmt.Errorf("%s: %w", key.name, err)
		}
	}
	return nil
}

// judgeForged shows that the value really is valid under the key that its kid names, and that the other key is refused for it.
func (r *Run) judgeForged(d *Driver, forged reference.Forged, one, other dataKey) error {
	r.Service.Play(holder(vectorTopic, one))
	if err := r.judge(d, []changed{{"under its own key", forged.Envelope, "ok"}}); err != nil {
		return err
	}
	r.Service.Play(holder(vectorTopic, dataKey{other.key, one.kid}))
	return r.judge(d, []changed{{"under the other key", forged.Envelope, "key-id-mismatch"}})
}
