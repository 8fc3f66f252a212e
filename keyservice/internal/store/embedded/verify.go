// Verifying a store when it is opened.

package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

// verify walks all buckets, unwraps every key, and then lets bbolt check its pages. The walk comes first: it
// meets every page that bbolt's check will meet, while faults are still caught.
func (s *Store) verify() error {
	return s.db.View(func(tx *bbolt.Tx) error {
		if err := s.checkMeta(tx); err != nil {
			return err
		}
		scopes, err := s.verifyKeys(tx)
		if err != nil {
			return err
		}
		if err := verifyScopes(tx, scopes); err != nil {
			return err
		}
		return checkPages(tx)
	})
}

// tryWriting notes the time of opening. Writing meets what reading does not (sizes in the page that lists the
// buckets), and a store that cannot be written is better known at the start.
func (s *Store) tryWriting() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(metaBucket).Put(openedName, []byte(time.Now().UTC().Format(time.RFC3339)))
	})
}

// verifyKeys unwraps every key and gives the scopes that they have.
func (s *Store) verifyKeys(tx *bbolt.Tx) (map[string]bool, error) {
	scopes := map[string]bool{}
	keys := tx.Bucket(keysBucket)
	err := keys.ForEach(func(kid, value []byte) error {
		if len(kid) != datakey.IDSize || !bytes.Equal(keys.Get(kid), value) {
			return errors.New("a key is not where it belongs")
		}
		r, err := decodeRecord(datakey.ID(kid), value)
		if err != nil {
			return err
		}
		key, err := s.unwrap(context.Background(), r)
		if err != nil {
			return err
		}
		key.Wipe()
		scopes[r.Scope] = true
		return nil
	})
	return scopes, err
}

// verifyScopes sees that every scope that has keys has a current one of its own.
func verifyScopes(tx *bbolt.Tx, scopes map[string]bool) error {
	count := 0
	err := tx.Bucket(scopesBucket).ForEach(func(scope, _ []byte) error {
		count++
		_, err := currentOf(tx, string(scope))
		return err
	})
	if err == nil && count != len(scopes) {
		return fmt.Errorf("%d scopes have keys, but %d have a current one", len(scopes), count)
	}
	return err
}

func checkPages(tx *bbolt.Tx) error {
	var first error
	for err := range tx.Check() { // to its end: the check runs until all errors are taken
		if first == nil {
			first = err
		}
	}
	return first
}

// bbolt's file starts with two meta pages, the newer of which counts. When it is damaged, bbolt quietly goes back to
// the older: keys that were handed out would be gone. So both must be whole.
const (
	pageHeaderSize  = 16
	metaSize        = 64
	metaMagic       = 0xED0CDAED
	pageSizeOffset  = 8
	highWaterOffset = 40
	checksumOffset  = 56
)

// checkHeaders reads both meta pages, without bbolt, and compares the file's size with what they claim.
func checkHeaders(path string) (err error) {
	f, err := os.Open(path) // #nosec G304 -- the administrator's path
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	meta, err := readMeta(f, 0)
	if err != nil {
		return err
	}
	pageSize := int64(binary.NativeEndian.Uint32(meta[pageSizeOffset:]))
	second, err := readMeta(f, pageSize)
	if err != nil {
		return err
	}
	for _, m := range [][]byte{meta, second} {
		if pages := binary.NativeEndian.Uint64(m[highWaterOffset:]); pages > uint64(info.Size()/pageSize) { // #nosec G115 -- sizes are positive
			return fmt.Errorf("it is cut short: %d bytes instead of %d pages of %d", info.Size(), pages, pageSize)
		}
	}
	return nil
}

func readMeta(f io.ReaderAt, page int64) ([]byte, error) {
	meta := make([]byte, metaSize)
	if _, err := f.ReadAt(meta, page+pageHeaderSize); err != nil {
		return nil, errors.New("it is cut short: its header is incomplete")
	}
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:checksumOffset])
	if binary.NativeEndian.Uint32(meta) != metaMagic || sum.Sum64() != binary.NativeEndian.Uint64(meta[checksumOffset:]) {
		return nil, errors.New("its header is damaged")
	}
	return meta, nil
}
