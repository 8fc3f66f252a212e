package decryptor

import (
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
)

// [CL-ENV-034] A cipher is kept while the key that it came from is held. One that is derived when that has ended already, between the grant of a
// clone and its use, serves that use and is not kept: nobody would let it go.
func TestCiphersOfKeysThatEnded(t *testing.T) {
	for name, c := range map[string]struct {
		before, after bool // whether the key ends before its first use, or after it
		kept          bool
	}{
		"it goes on":             {false, false, true},
		"it ends after its use":  {false, true, false},
		"it ends before its use": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			ciphers, err := NewCiphers()
			if err != nil {
				t.Fatal(err)
			}
			held := datakey.Generate()
			kid, err := held.ID()
			if err != nil {
				t.Fatal(err)
			}
			granted := held.Clone().Clone()
			end := func() {
				held.Wipe()
				ciphers.Forget(kid)
			}
			if c.before {
				end()
			}
			e := &envelope.Envelope{Kid: kid, Nonce: make([]byte, datakey.NonceSize)}
			if _, err := ciphers.of(e, granted); err != nil {
				t.Fatal("it cannot be used:", err)
			}
			granted.Wipe() // a clone's end is not the key's
			if c.after {
				end()
			}
			if kept := ciphers.lru.Len() == 1; kept != c.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}
