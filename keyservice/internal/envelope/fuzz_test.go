package envelope

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

// Whatever the bytes: one of the three refusals, or an envelope whose parts are the value, each byte once. [CL-ENV-004] [CL-ENV-005]
// [CL-ENV-006] [CL-ENV-007]
func FuzzParse(f *testing.F) {
	for _, v := range vectors.Read(f, "decrypt") {
		var input struct{ Value string }
		vectors.Decode(f, v.Input, &input)
		value, err := hex.DecodeString(input.Value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		before := bytes.Clone(value)
		e, err := Parse(value)
		if !bytes.Equal(value, before) {
			t.Fatal("reading changed the value")
		}
		if err != nil {
			refused, ok := errors.AsType[*refusal.Error](err)
			if !ok || e != nil || !slices.Contains([]refusal.Code{TooShort, UnsupportedVersion, UnsupportedFlags}, refused.Code) {
				t.Fatalf("%v, %v", e, err)
			}
			return
		}
		if whole := slices.Concat(e.Header, e.Nonce, e.Ciphertext, e.Tag); !bytes.Equal(whole, value) || len(value) < MinSize {
			t.Fatalf("%x is not %x", whole, value)
		}
		if value[2] != version || value[3] > 7 || value[3]&flagCompression > zstd || !bytes.Equal(e.Kid[:], value[4:20]) {
			t.Fatalf("accepted %x", value[:HeaderSize])
		}
		bound, null := e.AAD("claims", []byte{}), e.AAD("claims", nil)
		if e.KeyBound == bytes.Equal(bound, null) || !bytes.HasPrefix(bound, e.Header) {
			t.Fatal("a null key and an empty one have the same AAD")
		}
	})
}
