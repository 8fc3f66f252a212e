// Changes single bytes of a store's file, and sees that none is refused that is whole.

package embedded

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

// gone stands for the text of a key that was destroyed.
const gone = "destroyed"

// filled makes a store with several pages, among them free ones, some keys destroyed, and documents; it gives its keys in
// base64.
func filled(t *testing.T) (Paths, map[datakey.ID]string) {
	t.Helper()
	paths := initialised(t)
	s := open(t, paths)
	keys := map[datakey.ID]string{}
	for i := range 60 {
		r := current(t, s, fmt.Sprint("scope-", i%20))
		keys[r.ID] = base64Of(t, s, r)
		if i%3 == 0 {
			next, err := s.Rotate(t.Context(), r.Scope)
			if err != nil {
				t.Fatal(err)
			}
			keys[next.ID] = base64Of(t, s, next)
		}
		if i%6 == 0 {
			if err := s.Destroy(t.Context(), r.Scope, []datakey.ID{r.ID}); err != nil {
				t.Fatal(err)
			}
			keys[r.ID] = gone
		}
	}
	for i := range documents {
		if err := s.WriteDocument(t.Context(), "test", strconv.Itoa(i), 0, []byte(strings.Repeat("document ", 60*i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return paths, keys
}

const documents = 6

// Whatever byte is changed: the store is refused, or it still has every key and its current ones.
func TestFlippedBytes(t *testing.T) {
	paths, keys := filled(t)
	whole, err := os.ReadFile(paths.Keys)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	offsets := []int{}
	for i := range 96 { // both headers, byte by byte
		offsets = append(offsets, i, 4096+i)
	}
	offsets = append(offsets, freelists(whole)...)
	for page := 8192; page+4096 <= len(whole); page += 4096 {
		for range 8 { // what a page says of itself and of its first entries
			offsets = append(offsets, page+source.IntN(96))
		}
	}
	for range 150 {
		offsets = append(offsets, source.IntN(len(whole)))
	}
	rejected := 0
	for _, offset := range offsets {
		changed := append([]byte{}, whole...)
		changed[offset] ^= byte(1 + source.IntN(255))
		path := filepath.Join(filepath.Dir(paths.Keys), fmt.Sprint("flipped-", offset))
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if !survives(t, Paths{Keys: path, KEK: paths.KEK}, keys, offset) {
			rejected++
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d changes were refused, the others hit unused bytes", rejected, len(offsets))
	if rejected < 130 {
		t.Error("hardly any change was noticed")
	}
}

// Whatever byte of the KEK is changed: it is refused, or every key is as before. It never unwraps to another key, and no error shows it.
func TestFlippedKEK(t *testing.T) {
	paths, keys := filled(t)
	whole, err := os.ReadFile(paths.KEK)
	if err != nil {
		t.Fatal(err)
	}
	rejected := 0
	for offset := range whole {
		for _, bit := range []byte{1, 0x20, 0x80} {
			changed := bytes.Clone(whole)
			changed[offset] ^= bit
			if err := os.WriteFile(paths.KEK, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(paths)
			if err == nil {
				checkAll(t, s, keys, offset)
				_ = s.Close()
				continue
			}
			rejected++
			if !strings.Contains(err.Error(), "restore") || strings.Contains(err.Error(), string(whole[len(whole)/2:len(whole)/2+16])) {
				t.Errorf("byte %d: %v", offset, err)
			}
		}
	}
	t.Logf("%d of %d changes were refused", rejected, 3*len(whole))
	if rejected < len(whole) {
		t.Error("hardly any change was noticed")
	}
}

// freelists gives the places of the ids in pages that list free pages: with a wrong one, a page in use is overwritten
// some writes later.
func freelists(file []byte) []int {
	var offsets []int
	for page := 0; page+4096 <= len(file); page += 4096 {
		const kindOffset, freelistKind, idsOffset, ids = 8, 0x10, 16, 8
		if file[page+kindOffset] != freelistKind {
			continue
		}
		for i := range ids { // the low byte of each: others lead out of the file
			offsets = append(offsets, page+idsOffset+8*i, page+idsOffset+8*i)
		}
	}
	return offsets
}

func survives(t *testing.T, paths Paths, keys map[datakey.ID]string, offset int) bool {
	t.Helper()
	s, err := Open(paths)
	if err != nil {
		if !strings.Contains(err.Error(), "restore") {
			t.Errorf("byte %d: not said what to do: %v", offset, err)
		}
		return false
	}
	defer func() { _ = s.Close() }()
	for range 5 {
		if _, err := s.Rotate(t.Context(), "scope-1"); err != nil {
			t.Fatalf("byte %d: cannot write: %v", offset, err)
		}
	}
	checkAll(t, s, keys, offset)
	return true
}

func checkAll(t *testing.T, s *Store, keys map[datakey.ID]string, offset int) {
	t.Helper()
	for i := range documents {
		data, version, err := s.ReadDocument(t.Context(), "test", strconv.Itoa(i))
		if err != nil || version != 1 || string(data) != strings.Repeat("document ", 60*i+1) {
			t.Fatalf("byte %d: document %d changed or is gone, and the store opened: %v", offset, i, err)
		}
	}
	for id, want := range keys {
		found, err := s.Lookup(t.Context(), "claims", []datakey.ID{id})
		if err == nil && want == gone && found[id].IsDestroyed() {
			continue
		}
		if err != nil || found[id].ID != id || base64Of(t, s, found[id]) != want {
			t.Fatalf("byte %d: key %s is gone, and the store opened: %v", offset, id, err)
		}
	}
}

// What is whole is never refused: many keys, in an order that splits pages anywhere, opened again and again.
func TestLargeStoreIsNotRefused(t *testing.T) {
	paths := initialised(t)
	want := map[string]datakey.ID{}
	for range 6 {
		s := open(t, paths)
		for i := range 250 {
			scope := fmt.Sprint(strings.Repeat("s", 1+i%200), "-", len(want))
			want[scope] = current(t, s, scope).ID
			if i%10 == 0 {
				r, err := s.Rotate(t.Context(), scope)
				if err != nil {
					t.Fatal(err)
				}
				want[scope] = r.ID
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, paths)
	for scope, id := range want {
		if current(t, s, scope).ID != id {
			t.Fatalf("another key for %s", scope)
		}
	}
}
