// What happens to a store that is missing, loose, cut, or changed.

package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

func refused(t *testing.T, paths Paths, want string) {
	t.Helper()
	s, err := Open(paths)
	if err == nil {
		_ = s.Close()
		t.Fatal("opened")
	}
	if !strings.Contains(err.Error(), want) {
		t.Fatalf("%v; want %q", err, want)
	}
}

func TestInitMakesOnlyWhatIsNotThere(t *testing.T) {
	paths := initialised(t)
	for _, path := range []string{paths.Keys, paths.KEK} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(info.Mode(), err)
		}
	}
	before, err := os.ReadFile(paths.KEK)
	if err != nil {
		t.Fatal(err)
	}
	if err := Init(paths); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Fatal(err)
	}
	for _, left := range []string{paths.Keys, paths.KEK} {
		other := newPaths(t)
		if err := os.Mkdir(filepath.Dir(other.Keys), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(left, filepath.Join(filepath.Dir(other.Keys), filepath.Base(left))); err != nil {
			t.Fatal(err)
		}
		if err := Init(other); err == nil {
			t.Fatalf("made a store beside %s", left)
		}
	}
	if after, err := os.ReadFile(paths.KEK); err != nil || !bytes.Equal(after, before) {
		t.Fatal("the KEK was replaced")
	}
}

func TestMissingStoreIsNotMadeAnew(t *testing.T) {
	paths := newPaths(t)
	refused(t, paths, "cipherlane-keyservice init")
	if _, err := os.Stat(paths.Keys); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("opening made a store")
	}
	for _, missing := range []func(Paths) string{func(p Paths) string { return p.Keys }, func(p Paths) string { return p.KEK }} {
		paths := initialised(t)
		if err := os.Remove(missing(paths)); err != nil {
			t.Fatal(err)
		}
		refused(t, paths, "there is no "+missing(paths))
	}
}

// [CL-API-018]
func TestLooseModes(t *testing.T) {
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o602, 0o666} {
		paths := initialised(t)
		for _, path := range []string{paths.Keys, paths.KEK} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			refused(t, paths, "chmod 600 "+path)
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	paths := initialised(t)
	if err := os.Chmod(filepath.Dir(paths.Keys), 0o777); err != nil {
		t.Fatal(err)
	}
	refused(t, paths, "chmod 700")
	if err := Init(Paths{Keys: paths.Keys + "2", KEK: paths.KEK + "2"}); err == nil {
		t.Fatal("made a store in a folder that everybody may change")
	}
}

func TestKEKOfAnotherStore(t *testing.T) {
	one, two := initialised(t), initialised(t)
	refused(t, Paths{Keys: one.Keys, KEK: two.KEK}, "the KEK does not fit")
	for name, content := range map[string]string{
		"empty": "", "no JSON": "xx", "no keyset": "{}", "no keys": `{"primaryKeyId":1,"key":[]}`, "long": strings.Repeat(" ", maxKeysetSize+1),
	} {
		if err := os.WriteFile(one.KEK, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(one); err == nil {
			_ = s.Close()
			t.Errorf("%s: opened", name)
		}
	}
}

func TestInUse(t *testing.T) {
	paths := initialised(t)
	open(t, paths)
	refused(t, paths, "in use by another process")
}

// filled makes a store with several pages, among them free ones, and gives its keys in base64.
func filled(t *testing.T) (Paths, map[datakey.ID]string) {
	t.Helper()
	paths := initialised(t)
	s := open(t, paths)
	keys := map[datakey.ID]string{}
	for i := range 60 {
		r := current(t, s, fmt.Sprint("scope-", i%20))
		keys[r.ID] = base64Of(t, s, r)
		if i%3 == 0 {
			r, err := s.Rotate(t.Context(), r.Scope)
			if err != nil {
				t.Fatal(err)
			}
			keys[r.ID] = base64Of(t, s, r)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return paths, keys
}

func TestCutShort(t *testing.T) {
	paths, _ := filled(t)
	whole, err := os.ReadFile(paths.Keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 15, 80, 4095, 4096, 4176, 8192, 8193, 12288, 16384, len(whole) / 2} {
		if err := os.WriteFile(paths.Keys, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, paths, "restore both it and its KEK from one backup")
		if info, err := os.Stat(paths.Keys); err != nil || info.Size() != int64(size) {
			t.Fatalf("opening changed the file of %d bytes", size)
		}
	}
}

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
		return false
	}
	defer func() { _ = s.Close() }()
	for range 5 {
		if _, err := s.Rotate(t.Context(), "scope-1"); err != nil {
			t.Fatalf("byte %d: cannot write: %v", offset, err)
		}
	}
	for id, want := range keys {
		found, err := s.Lookup(t.Context(), "claims", []datakey.ID{id})
		if err != nil || found[id].ID != id || base64Of(t, s, found[id]) != want {
			t.Fatalf("byte %d: key %s is gone, and the store opened: %v", offset, id, err)
		}
	}
	return true
}

// Changes that keep the file's own structure whole.
func TestTamperedRecords(t *testing.T) {
	for name, tamper := range map[string]func(tx *bbolt.Tx, a, b store.Record) error{
		"current key of another scope": func(tx *bbolt.Tx, a, b store.Record) error {
			return tx.Bucket(scopesBucket).Put([]byte(a.Scope), b.ID[:])
		},
		"current key that does not exist": func(tx *bbolt.Tx, a, _ store.Record) error {
			return tx.Bucket(scopesBucket).Put([]byte(a.Scope), make([]byte, datakey.IDSize))
		},
		"current key of wrong size": func(tx *bbolt.Tx, a, _ store.Record) error {
			return tx.Bucket(scopesBucket).Put([]byte(a.Scope), []byte{1})
		},
		"no current key": func(tx *bbolt.Tx, a, _ store.Record) error { return tx.Bucket(scopesBucket).Delete([]byte(a.Scope)) },
		"key removed":    func(tx *bbolt.Tx, a, _ store.Record) error { return tx.Bucket(keysBucket).Delete(a.ID[:]) },
		"record under a kid": func(tx *bbolt.Tx, a, b store.Record) error {
			return tx.Bucket(keysBucket).Put(a.ID[:], tx.Bucket(keysBucket).Get(b.ID[:]))
		},
		"record of nonsense": func(tx *bbolt.Tx, a, _ store.Record) error { return tx.Bucket(keysBucket).Put(a.ID[:], []byte("{}")) },
		"kid of wrong size": func(tx *bbolt.Tx, _, _ store.Record) error {
			return tx.Bucket(keysBucket).Put([]byte("x"), []byte("{}"))
		},
		"later format":        func(tx *bbolt.Tx, _, _ store.Record) error { return tx.Bucket(metaBucket).Put(formatName, []byte("2")) },
		"no format":           func(tx *bbolt.Tx, _, _ store.Record) error { return tx.DeleteBucket(metaBucket) },
		"no keys":             func(tx *bbolt.Tx, _, _ store.Record) error { return tx.DeleteBucket(keysBucket) },
		"no check of the KEK": func(tx *bbolt.Tx, _, _ store.Record) error { return tx.Bucket(metaBucket).Delete(checkName) },
	} {
		t.Run(name, func(t *testing.T) {
			paths := initialised(t)
			s := open(t, paths)
			a, b := current(t, s, "a"), current(t, s, "b")
			if err := s.db.Update(func(tx *bbolt.Tx) error { return tamper(tx, a, b) }); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			refused(t, paths, "cannot be used")
		})
	}
}
