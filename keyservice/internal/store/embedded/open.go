// Making and opening the store. Nothing is made by opening: a store that went missing must not silently become an
// empty one, because every record encrypted under its keys would be lost.

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

// lockTimeout is how long another process may hold the file before opening it is given up.
const lockTimeout = time.Second

// ErrMissing says that there is no store at the paths given.
var ErrMissing = errors.New("the key store is missing")

// Init makes an empty store and its KEK. It refuses when one of the two files exists.
func Init(paths Paths) (err error) {
	for _, path := range []string{paths.Keys, paths.KEK} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists: a store is made only where there is none", path)
		}
		if err := prepareFolder(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := createKEK(paths.KEK); err != nil {
		return err
	}
	if err := files.CreateSecret(paths.Keys, nil); err != nil {
		return err
	}
	s, err := openFile(paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.update(s.putMeta)
}

func prepareFolder(dir string) error {
	if err := os.MkdirAll(dir, files.DirMode); err != nil {
		return err
	}
	return files.CheckFolder(dir)
}

// Open opens a store, and reads all of it, so that damage shows before a key is missed.
func Open(paths Paths) (*Store, error) {
	for _, path := range []string{paths.Keys, paths.KEK} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no %s. Restore it from a backup; for a new, empty store "+
				"run: cipherlane-keyservice init --config FILE", ErrMissing, path)
		}
		if err := files.CheckSecret(path); err != nil {
			return nil, err
		}
	}
	if err := checkLayout(paths.Keys); err != nil {
		return nil, openError(paths.Keys, err)
	}
	return openVerified(paths)
}

// openVerified turns faults into errors, should the file be cut or changed under our hands: bbolt then panics, or touches
// memory behind the file's end.
func openVerified(paths Paths) (s *Store, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, damaged(paths.Keys, fmt.Errorf("%v", r))
		}
	}()
	if s, err = openFile(paths); err != nil {
		return nil, err
	}
	if err := s.verify(); err != nil {
		return nil, errors.Join(damaged(paths.Keys, err), s.Close())
	}
	return s, nil
}

func openFile(paths Paths) (*Store, error) {
	kek, err := readKEK(paths.KEK)
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(paths.Keys, files.SecretMode, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return nil, openError(paths.Keys, err)
	}
	s := &Store{db: db, paths: paths}
	s.kek.Store(kek)
	return s, nil
}

// errInUse says that another process has the file open.
var errInUse = errors.New("the file is locked")

func openError(path string, err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) || errors.Is(err, errInUse) {
		return fmt.Errorf("the key store %s is in use by another process", path)
	}
	return damaged(path, err)
}

func damaged(path string, cause error) error {
	return fmt.Errorf("the key store %s cannot be used: %w. Keep the file, and restore both it and its KEK from one backup", path, cause)
}
