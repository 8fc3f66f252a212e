// All vectors of spec/vectors that concern reading.

package decryptor

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bytesOf gives nil for a JSON null.
func bytesOf(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var text *string
	vectors.Decode(t, raw, &text)
	if text == nil {
		return nil
	}
	return append([]byte{}, unhex(t, *text)...)
}

func codeOf(err error) refusal.Code {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r.Code
	}
	return "none"
}

type givenKey struct{ Scope, Key, Error string }

func keysOf(t *testing.T, given map[string]givenKey) Keys {
	t.Helper()
	return func(kid datakey.ID) (string, *datakey.Key, error) {
		k, known := given[kid.String()]
		switch {
		case !known:
			return "", nil, refusal.New(refusal.KeyUnknown, "no such key")
		case k.Error != "":
			return "", nil, refusal.New(refusal.Code(k.Error), "refused")
		}
		key, err := keyclient.Receive(base64.StdEncoding.EncodeToString(unhex(t, k.Key)), kid)
		return k.Scope, key, err
	}
}

func TestDecryptVectors(t *testing.T) {
	for _, v := range vectors.Read(t, "decrypt") {
		t.Run(v.ID, func(t *testing.T) {
			var in struct {
				Value        json.RawMessage     `json:"value"`
				RecordKey    json.RawMessage     `json:"record_key"`
				Plaintext    string              `json:"plaintext"`
				MaxPlaintext int                 `json:"max_plaintext"`
				Keys         map[string]givenKey `json:"keys"`
			}
			vectors.Decode(t, v.Input, &in)
			key := RecordKey{Known: in.RecordKey != nil}
			if key.Known {
				key.Bytes = bytesOf(t, in.RecordKey)
			}
			r := &Reader{Keys: keysOf(t, in.Keys), AcceptPlaintext: in.Plaintext == "accept", MaxPlaintext: in.MaxPlaintext}
			got, err := r.Read(bytesOf(t, in.Value), key)
			if v.Result == "error" {
				if string(codeOf(err)) != v.Error.Code || got != nil {
					t.Errorf("%v, want %s", err, v.Error.Code)
				}
				return
			}
			var out struct {
				Plaintext json.RawMessage `json:"plaintext"`
			}
			vectors.Decode(t, v.Output, &out)
			want := bytesOf(t, out.Plaintext)
			if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("%x %v, want %x", got, err, want)
			}
		})
	}
}

// keyOf gives a key with the id that is its own.
func keyOf(t *testing.T, text string) *datakey.Key {
	t.Helper()
	raw := unhex(t, text)
	id, err := hkdf.Key(sha256.New, raw, nil, "cipherlane v1 key id", datakey.IDSize)
	if err != nil {
		t.Fatal(err)
	}
	key, err := datakey.Parse(raw, datakey.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// What every writer must write, opened here: layout, key id, AAD and cipher.
func TestEncryptVectors(t *testing.T) {
	for _, v := range vectors.Read(t, "encrypt") {
		var in struct {
			Key, Scope, Plaintext string
			NoncePrefix           string          `json:"nonce_prefix"`
			Counter               uint32          `json:"counter"`
			RecordKey             json.RawMessage `json:"record_key"`
		}
		var out struct{ Envelope string }
		vectors.Decode(t, v.Input, &in)
		if v.Result != "ok" {
			continue
		}
		vectors.Decode(t, v.Output, &out)
		value := unhex(t, out.Envelope)
		e, err := envelope.Parse(value)
		if err != nil {
			t.Fatal(v.ID, err)
		}
		key := keyOf(t, in.Key)
		if id, err := key.ID(); err != nil || id != e.Kid {
			t.Errorf("%s: kid %s, want %s", v.ID, id, e.Kid)
		}
		var recordKey []byte
		if in.RecordKey != nil {
			recordKey = bytesOf(t, in.RecordKey)
		}
		got, err := key.Decrypt(e.Sealed(value), e.AAD(in.Scope, recordKey))
		if err != nil || hex.EncodeToString(got) != in.Plaintext || e.Counter() != in.Counter || hex.EncodeToString(e.Nonce[:envelope.SessionSize]) != in.NoncePrefix {
			t.Errorf("%s: %x %v", v.ID, got, err)
		}
	}
}

func TestXAESVectors(t *testing.T) {
	for _, v := range vectors.Read(t, "xaes") {
		var in struct {
			Key, Nonce, AAD, Plaintext string
			Ciphertext                 *string
		}
		var out struct{ Plaintext, Ciphertext string }
		vectors.Decode(t, v.Input, &in)
		if v.Result == "ok" {
			vectors.Decode(t, v.Output, &out)
		}
		sealed, want := out.Ciphertext, in.Plaintext
		if in.Ciphertext != nil {
			sealed, want = *in.Ciphertext, out.Plaintext
		}
		got, err := keyOf(t, in.Key).Decrypt(append(unhex(t, in.Nonce), unhex(t, sealed)...), unhex(t, in.AAD))
		if (err == nil) != (v.Result == "ok") || err == nil && hex.EncodeToString(got) != want {
			t.Errorf("%s: %x %v", v.ID, got, err)
		}
	}
}
