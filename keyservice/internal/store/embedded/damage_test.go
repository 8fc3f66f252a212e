// What happens to a store that is missing, loose, cut, or changed.

package embedded

import (
	"bytes"
	"errors"
	"io/fs"
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

func TestCutShort(t *testing.T) {
	paths, _ := filled(t)
	whole, err := os.ReadFile(paths.Keys)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readHeaders(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	used := int(m.high * m.pageSize) // the file has more, which bbolt keeps in reserve
	for _, size := range []int{0, 1, 15, 80, 4095, 4096, 4176, 8192, 8193, 12288, 16384, used / 2, used - 1} {
		if err := os.WriteFile(paths.Keys, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, paths, "restore both it and its KEK from one backup")
		if info, err := os.Stat(paths.Keys); err != nil || info.Size() != int64(size) {
			t.Fatalf("opening changed the file of %d bytes", size)
		}
	}
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
