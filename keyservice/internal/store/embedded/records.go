// How records stand in the bbolt file.

package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// stored is the value in the keys bucket.
type stored struct {
	Scope   string `json:"scope"`
	Created int64  `json:"created_ms"`
	Wrapped []byte `json:"wrapped"`
}

var (
	errNoKey  = errors.New("no such key")
	errFormat = errors.New("it is not a store of this version of cipherlane-keyservice")
)

// currentOf gives a scope's current key, or errNoCurrent.
func currentOf(tx *bbolt.Tx, scope string) (store.Record, error) {
	kid := tx.Bucket(scopesBucket).Get([]byte(scope))
	if kid == nil {
		return store.Record{}, errNoCurrent
	}
	if len(kid) != datakey.IDSize {
		return store.Record{}, fmt.Errorf("scope %s names a kid of %d bytes", scope, len(kid))
	}
	r, err := recordOf(tx, datakey.ID(kid))
	switch {
	case err != nil:
		return store.Record{}, fmt.Errorf("the current key of scope %s: %w", scope, err)
	case r.Scope != scope:
		return store.Record{}, fmt.Errorf("the current key of scope %s belongs to scope %s", scope, r.Scope)
	default:
		return r, nil
	}
}

// recordOf gives a key by id, or errNoKey.
func recordOf(tx *bbolt.Tx, id datakey.ID) (store.Record, error) {
	value := tx.Bucket(keysBucket).Get(id[:])
	if value == nil {
		return store.Record{}, errNoKey
	}
	return decodeRecord(id, value)
}

func decodeRecord(id datakey.ID, value []byte) (store.Record, error) {
	var s stored
	if err := json.Unmarshal(value, &s, json.RejectUnknownMembers(true)); err != nil {
		return store.Record{}, fmt.Errorf("the record of key %s is damaged: %w", id, err)
	}
	if err := names.CheckTopic(s.Scope); err != nil {
		return store.Record{}, fmt.Errorf("the record of key %s has an invalid scope: %w", id, err)
	}
	return store.Record{ID: id, Scope: s.Scope, Created: time.UnixMilli(s.Created).UTC(), Wrapped: s.Wrapped}, nil
}

// putCurrent stores a key and makes it its scope's current one.
func putCurrent(tx *bbolt.Tx, r store.Record) error {
	value, err := json.Marshal(stored{Scope: r.Scope, Created: r.Created.UnixMilli(), Wrapped: r.Wrapped})
	if err != nil {
		return err
	}
	if err := tx.Bucket(keysBucket).Put(r.ID[:], value); err != nil {
		return err
	}
	return tx.Bucket(scopesBucket).Put([]byte(r.Scope), r.ID[:])
}

// putMeta writes what checkMeta looks for.
func (s *Store) putMeta(tx *bbolt.Tx) error {
	for _, name := range [][]byte{metaBucket, keysBucket, scopesBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	check, err := s.kek.Encrypt(checkValue, checkName)
	if err != nil {
		return err
	}
	meta := tx.Bucket(metaBucket)
	return errors.Join(meta.Put(formatName, formatValue), meta.Put(checkName, check))
}

// checkMeta tells whether file, format and KEK belong together.
func (s *Store) checkMeta(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil || tx.Bucket(keysBucket) == nil || tx.Bucket(scopesBucket) == nil {
		return errFormat
	}
	if !bytes.Equal(meta.Get(formatName), formatValue) {
		return errFormat
	}
	got, err := s.kek.Decrypt(meta.Get(checkName), checkName)
	if err != nil || !bytes.Equal(got, checkValue) {
		return errors.New("the KEK does not fit: it belongs to another store, or one of the two is damaged")
	}
	return nil
}
