package keyclient

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

type answerInput struct {
	Kids        []string
	Status      int
	ContentType string `json:"content_type"`
	Body        string
}

func (i answerInput) answer() *answer { return &answer{i.Status, i.ContentType, []byte(i.Body)} }

func codeOf(err error) refusal.Code {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r.Code
	}
	return "none"
}

// [CL-KEY-003] [CL-KEY-004]
func TestEncryptionKeyAnswers(t *testing.T) {
	for _, v := range vectors.Read(t, "encryption-key-answer") {
		t.Run(v.ID, func(t *testing.T) {
			var in answerInput
			vectors.Decode(t, v.Input, &in)
			g, err := in.answer().grant()
			if v.Result == "error" {
				if g != nil || string(codeOf(err)) != v.Error.Code {
					t.Fatalf("%v %v, want %s", g, err, v.Error.Code)
				}
				return
			}
			var out struct{ Mode, Scope, Kid string }
			vectors.Decode(t, v.Output, &out)
			if err != nil || string(g.Mode) != out.Mode || g.Scope != out.Scope || out.Kid != "" && g.Kid.String() != out.Kid {
				t.Fatalf("%v %v, want %+v", g, err, out)
			}
		})
	}
}

// [CL-KEY-003] [CL-KEY-004]
func TestDecryptionKeysAnswers(t *testing.T) {
	for _, v := range vectors.Read(t, "decryption-keys-answer") {
		t.Run(v.ID, func(t *testing.T) {
			var in answerInput
			vectors.Decode(t, v.Input, &in)
			kids := make([]datakey.ID, len(in.Kids))
			for i, text := range in.Kids {
				kids[i], _ = datakey.ParseID(text)
			}
			r, err := in.answer().readable(kids)
			if v.Result == "error" {
				if r != nil || string(codeOf(err)) != v.Error.Code {
					t.Fatalf("%v %v, want %s", r, err, v.Error.Code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareReadable(t, r, v.Output)
		})
	}
}

func compareReadable(t *testing.T, r *Readable, output json.RawMessage) {
	t.Helper()
	var out struct {
		Plaintext string
		Keys      map[string]struct{ Scope, Error string }
	}
	vectors.Decode(t, output, &out)
	if r.AcceptPlaintext != (out.Plaintext == "accept") || len(r.Keys) != len(out.Keys) {
		t.Fatalf("%+v, want %+v", r, out)
	}
	for kid, k := range r.Keys {
		want := out.Keys[kid.String()]
		if want.Error != "" && string(codeOf(k.Err)) != want.Error || want.Error == "" && (k.Err != nil || k.Scope != want.Scope) {
			t.Errorf("%s: %v %s, want %+v", kid, k.Err, k.Scope, want)
		}
	}
}
