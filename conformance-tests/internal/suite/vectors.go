package suite

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/reference"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/vectors"
)

const vectorTopic = "claims"

// Each kind of vectors/README.md: what a driver must know, and how it is run through one. What an SDK does with an answer of the
// key service is seen by giving it that answer.
var kinds = map[string]struct {
	needs []string
	run   func(*Run, *Driver, vectors.Vector) error
}{
	"key-id":                 {[]string{driver.OpOpen, driver.OpEncrypt}, keyIDVector},
	"xaes":                   {[]string{driver.OpXAESDecrypt}, xaesVector},
	"encrypt":                {[]string{driver.OpOpen, driver.OpDecrypt}, encryptVector},
	"write":                  {[]string{driver.OpOpen, driver.OpEncrypt}, writeVector},
	"decrypt":                {[]string{driver.OpOpen, driver.OpDecrypt}, decryptVector},
	"encryption-key-answer":  {[]string{driver.OpOpen, driver.OpEncrypt}, encryptionAnswerVector},
	"decryption-keys-answer": {[]string{driver.OpOpen, driver.OpDecryptAll}, decryptionAnswerVector},
	"topic":                  {[]string{driver.OpOpen, driver.OpEncrypt}, topicVector},
}

func runVectors(r *Run) error {
	for _, d := range r.Drivers {
		r.Progress("vectors: %s", d.Label)
		for _, vector := range r.Vectors {
			kind, known := kinds[vector.Kind]
			if !known {
				return fmt.Errorf("vectors of kind %q: the runner is older than the specification", vector.Kind)
			}
			r.check("vectors", vector.ID, d, kind.needs, func() error {
				if err := kind.run(r, d, vector); err != nil {
					return fmt.Errorf("%s (%s): %w; input %.400s", vector.ID, vector.Comment, err, vector.Input)
				}
				return nil
			})
		}
	}
	return nil
}

func read[T any](raw json.RawMessage) (value T, err error) {
	if raw == nil {
		return value, nil
	}
	err = json.Unmarshal(raw, &value)
	return value, err
}

func keyIDVector(r *Run, d *Driver, v vectors.Vector) error {
	input, err := read[struct{ Key driver.Bytes }](v.Input)
	if err != nil {
		return err
	}
	output, err := read[struct{ Kid string }](v.Output)
	if err != nil {
		return err
	}
	kid := output.Kid
	if kid == "" {
		kid = "00000000000000000000000000000000"
	}
	r.Service.Play(func(scripted.Call) scripted.Reply { return scripted.EncryptionKey(vectorTopic, kid, input.Key) })
	return r.encryptOnce(d, v.Code(), kid)
}

// encryptOnce expects a code, and of an envelope the kid.
func (r *Run) encryptOnce(d *Driver, code, kid string) error {
	if err := r.open(d); err != nil {
		return err
	}
	value, err := encrypt(d, vectorTopic, []byte("x"))
	if err := verdict(code, nil, false, value, err); err != nil || code != "ok" {
		return err
	}
	if len(value) != 61 || hex.EncodeToString(value[4:20]) != kid {
		return fmt.Errorf("not an envelope of kid %s: %s", kid, short(value))
	}
	return nil
}

func xaesVector(_ *Run, d *Driver, v vectors.Vector) error {
	input, err := read[struct{ Key, Nonce, AAD, Plaintext, Ciphertext driver.Bytes }](v.Input)
	if err != nil {
		return err
	}
	output, err := read[struct{ Plaintext, Ciphertext driver.Bytes }](v.Output)
	if err != nil {
		return err
	}
	ciphertext, plaintext := input.Ciphertext, output.Plaintext
	if ciphertext == nil { // an encrypting vector, the other way round
		ciphertext, plaintext = output.Ciphertext, input.Plaintext
	}
	var got struct{ Plaintext driver.Bytes }
	err = d.Call(driver.Request{Op: driver.OpXAESDecrypt, Key: input.Key, Nonce: input.Nonce, AAD: input.AAD, Ciphertext: ciphertext}, &got)
	return verdict(v.Code(), plaintext, true, got.Plaintext, err)
}

// encryptVector reads the envelope that the vector says a writer makes: nonces cannot be told to a driver.
func encryptVector(r *Run, d *Driver, v vectors.Vector) error {
	input, err := read[struct {
		Key       driver.Bytes
		Scope     string
		Flags     byte
		RecordKey driver.Bytes `json:"record_key"`
		Plaintext driver.Bytes
	}](v.Input)
	if err != nil {
		return err
	}
	output, err := read[struct{ Envelope driver.Bytes }](v.Output)
	if err != nil {
		return err
	}
	r.Service.Play(oneKey(input.Scope, input.Key))
	if err := r.open(d); err != nil {
		return err
	}
	got, err := decrypt(d, vectorTopic, output.Envelope, driver.Key(input.RecordKey))
	if input.Flags&3 == 0 {
		return verdict("ok", input.Plaintext, true, got, err)
	}
	want, failure := reference.Decompress(input.Plaintext)
	code, broken := codeOf(failure)
	return errors.Join(broken, verdict(code, want, true, got, err))
}

// oneKey gives this key for every topic and kid, as if it were of that kid.
func oneKey(scope string, key []byte) scripted.Script {
	return func(call scripted.Call) scripted.Reply {
		var entries []map[string]any
		for _, kid := range call.Kids {
			entries = append(entries, scripted.Key(scope, kid, key))
		}
		return scripted.DecryptionKeys("reject", entries)
	}
}

func writeVector(r *Run, d *Driver, v vectors.Vector) error {
	input, err := read[struct {
		Mode         string
		Value        driver.Bytes
		MaxPlaintext int `json:"max_plaintext"`
	}](v.Input)
	if err != nil {
		return err
	}
	output, err := read[struct{ Action string }](v.Output)
	if err != nil {
		return err
	}
	key := bytes.Repeat([]byte{7}, 32)
	kid, err := reference.KeyID(key)
	if err != nil {
		return err
	}
	r.Service.Play(func(scripted.Call) scripted.Reply {
		if input.Mode == "encrypt" {
			return scripted.EncryptionKey(vectorTopic, kid, key)
		}
		return scripted.Mode(input.Mode)
	})
	if err := r.open(d, "cipherlane.max.plaintext.bytes", strconv.Itoa(input.MaxPlaintext)); err != nil {
		return err
	}
	got, err := encrypt(d, vectorTopic, input.Value)
	if output.Action == "encrypt" && err == nil {
		if len(got) != len(input.Value)+60 || hex.EncodeToString(got[4:20]) != kid {
			return fmt.Errorf("not an envelope of the key: %s", short(got))
		}
		return nil
	}
	return verdict(v.Code(), input.Value, true, got, err)
}

func decryptVector(r *Run, d *Driver, v vectors.Vector) error {
	input, err := read[struct {
		Topic, Plaintext string
		Value            driver.Bytes
		RecordKey        json.RawMessage `json:"record_key"`
		MaxPlaintext     int             `json:"max_plaintext"`
		Keys             map[string]struct {
			Scope, Error string
			Key          driver.Bytes
		}
	}](v.Input)
	if err != nil {
		return err
	}
	output, err := read[struct{ Plaintext driver.Bytes }](v.Output)
	if err != nil {
		return err
	}
	r.Service.Play(func(call scripted.Call) scripted.Reply {
		var entries []map[string]any
		for _, kid := range call.Kids {
			key, known := input.Keys[kid]
			switch {
			case !known:
				entries = append(entries, scripted.KidProblem(kid, "key-unknown"))
			case key.Error != "":
				entries = append(entries, scripted.KidProblem(kid, key.Error))
			default:
				entries = append(entries, scripted.Key(key.Scope, kid, key.Key))
			}
		}
		return scripted.DecryptionKeys(input.Plaintext, entries)
	})
	if err := r.open(d, "cipherlane.max.plaintext.bytes", strconv.Itoa(input.MaxPlaintext)); err != nil {
		return err
	}
	var key *driver.RecordKey
	if input.RecordKey != nil {
		key = &driver.RecordKey{}
		if err := json.Unmarshal(input.RecordKey, &key.Bytes); err != nil {
			return err
		}
	}
	got, err := decrypt(d, input.Topic, input.Value, key)
	return verdict(v.Code(), output.Plaintext, true, got, err)
}

type answerInput struct {
	Kids        []string
	Status      int
	ContentType string `json:"content_type"`
	Body        string
}

func (r *Run) playAnswer(input answerInput) {
	r.Service.Play(func(scripted.Call) scripted.Reply {
		return scripted.Reply{Status: input.Status, ContentType: input.ContentType, Body: input.Body}
	})
}

func encryptionAnswerVector(r *Run, d *Driver, v vectors.Vector) error {
	input, err := read[answerInput](v.Input)
	if err != nil {
		return err
	}
	output, err := read[struct{ Mode, Kid string }](v.Output)
	if err != nil {
		return err
	}
	r.playAnswer(input)
	if v.Result != "ok" || output.Mode == "encrypt" {
		return r.encryptOnce(d, v.Code(), output.Kid)
	}
	if err := r.open(d); err != nil {
		return err
	}
	got, err := encrypt(d, vectorTopic, []byte("x"))
	if output.Mode == "forbid" {
		return verdict("topic-forbidden", nil, false, got, err)
	}
	return verdict("ok", []byte("x"), true, got, err)
}

// decryptionAnswerVector asks for the kids by envelopes that no key opens: a key that was taken shows as
// authentication-failed.
func decryptionAnswerVector(r *Run, d *Driver, v vectors.Vector) error {
	input, err := read[answerInput](v.Input)
	if err != nil {
		return err
	}
	output, err := read[struct {
		Plaintext string
		Keys      map[string]struct{ Scope, Error string }
	}](v.Output)
	if err != nil {
		return err
	}
	r.playAnswer(input)
	if err := r.open(d); err != nil {
		return err
	}
	if len(input.Kids) == 0 {
		return plaintextVector(d, v.Code(), output.Plaintext)
	}
	values := make([][]byte, len(input.Kids))
	for i, kid := range input.Kids {
		values[i] = emptyEnvelope(kid)
	}
	outcomes, err := decryptAll(d, vectorTopic, values)
	if err != nil {
		return err
	}
	for i, kid := range input.Kids {
		want := v.Code()
		if want == "ok" {
			want = output.Keys[kid].Error
		}
		if want == "" {
			want = authenticationFailed
		}
		if err := verdict(want, nil, false, outcomes[i].Value, asError(outcomes[i].Error)); err != nil {
			return fmt.Errorf("kid %s: %w", kid, err)
		}
	}
	return nil
}

func plaintextVector(d *Driver, code, policy string) error {
	got, err := decrypt(d, vectorTopic, []byte("x"), nil)
	if code == "ok" && policy == "reject" {
		code = plaintextRejected
	}
	return verdict(code, []byte("x"), true, got, err)
}

func emptyEnvelope(kid string) []byte {
	value := []byte{0xc1, 0x9e, 1, 0}
	for i := 0; i+1 < len(kid); i += 2 {
		digit, _ := strconv.ParseUint(kid[i:i+2], 16, 8)
		value = append(value, byte(digit))
	}
	return slices.Concat(value, make([]byte, 40))
}

// asError keeps a nil pointer from becoming an error that is not nil.
func asError(e *driver.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func topicVector(r *Run, d *Driver, v vectors.Vector) error {
	input, err := read[struct{ Topic string }](v.Input)
	if err != nil {
		return err
	}
	r.Service.Play(func(scripted.Call) scripted.Reply { return scripted.Mode("clear") })
	if err := r.open(d); err != nil {
		return err
	}
	got, err := encrypt(d, input.Topic, []byte("x"))
	return verdict(v.Code(), []byte("x"), true, got, err)
}
