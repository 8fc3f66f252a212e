package encryptor

import (
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

// [CL-ENV-034] A session goes on while the key that it came from is held. One that begins when that has ended already, between the grant of a clone and
// its use, is for those records only.
func TestSessionsOfKeysThatEnded(t *testing.T) {
	for name, c := range map[string]struct {
		before, after bool // whether the key ends before its first use, or after it
		kept          int
	}{
		"it goes on":             {false, false, 1},
		"it ends after its use":  {false, true, 0},
		"it ends before its use": {true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(nil, 1<<20)
			held := datakey.Generate()
			kid, err := held.ID()
			if err != nil {
				t.Fatal(err)
			}
			granted := held.Clone()
			end := func() {
				held.Wipe()
				e.Forget(kid)
			}
			if c.before {
				end()
			}
			w := &Writer{of: e, kid: kid, left: 1}
			if err := e.begin(w, granted); err != nil {
				t.Fatal(err)
			}
			granted.Wipe() // a clone's end is not the key's
			if value, err := w.Append(nil, []byte("canary"), nil); err != nil || len(value) != Overhead+len("canary") {
				t.Error("it cannot be used:", len(value), err)
			}
			if c.after {
				end()
			}
			if len(e.sessions) != c.kept {
				t.Errorf("%d sessions are kept", len(e.sessions))
			}
		})
	}
}
