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
	Scope     string `json:"scope"`
	Created   int64  `json:"created_ms"`
	Wrapped   []byte `json:"wrapped,omitempty"`
	Destroyed int64  `json:"destroyed_ms,omitzero"`
	Proof     []byte `json:"proof,omitempty"` // of a destroyed key: that its record is what was written
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
	r, _, err := decodeStored(id, value)
	return r, err
}

// decodeStored gives a record, and the proof of a destroyed key's.
func decodeStored(id datakey.ID, value []byte) (r store.Record, proof []byte, err error) {
	var s stored
	if err := json.Unmarshal(value, &s, json.RejectUnknownMembers(true)); err != nil {
		return r, nil, fmt.Errorf("the record of key %s is damaged: %w", id, err)
	}
	if err := names.CheckTopic(s.Scope); err != nil {
		return r, nil, fmt.Errorf("the record of key %s has an invalid scope: %w", id, err)
	}
	r = store.Record{ID: id, Scope: s.Scope, Created: time.UnixMilli(s.Created).UTC(), Wrapped: s.Wrapped}
	if s.Destroyed != 0 {
		r.Destroyed = time.UnixMilli(s.Destroyed).UTC()
	}
	if r.IsDestroyed() != (len(r.Wrapped) == 0) || r.IsDestroyed() != (len(s.Proof) > 0) {
		return r, nil, fmt.Errorf("the record of key %s is damaged: a key is either wrapped or destroyed", id)
	}
	return r, s.Proof, nil
}

// putCurrent stores a key and makes it its scope's current one.
func (s *Store) putCurrent(tx *bbolt.Tx, r store.Record) error {
	if err := s.putRecord(tx, r); err != nil {
		return err
	}
	return tx.Bucket(scopesBucket).Put([]byte(r.Scope), r.ID[:])
}

func (s *Store) putRecord(tx *bbolt.Tx, r store.Record) (err error) {
	d := stored{Scope: r.Scope, Created: r.Created.UnixMilli(), Wrapped: r.Wrapped}
	if r.IsDestroyed() {
		d.Destroyed = r.Destroyed.UnixMilli()
		if d.Proof, err = s.kek.Load().Encrypt(nil, destroyedData(r)); err != nil {
			return fmt.Errorf("prove that key %s is destroyed: %w", r.ID, err)
		}
	}
	value, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return tx.Bucket(keysBucket).Put(r.ID[:], value)
}

// putMeta writes what checkMeta looks for.
func (s *Store) putMeta(tx *bbolt.Tx) error {
	for _, name := range [][]byte{metaBucket, keysBucket, scopesBucket, documentsBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return errors.Join(tx.Bucket(metaBucket).Put(formatName, formatValue), s.putCheck(tx))
}

func (s *Store) putCheck(tx *bbolt.Tx) error {
	check, err := s.kek.Load().Encrypt(checkValue, checkName)
	if err != nil {
		return err
	}
	return tx.Bucket(metaBucket).Put(checkName, check)
}

// addDocuments makes the bucket of documents in a store that was made before there were any.
func (s *Store) addDocuments() error {
	missing := false
	err := s.view(func(tx *bbolt.Tx) error {
		missing = tx.Bucket(documentsBucket) == nil
		return nil
	})
	if err != nil || !missing {
		return err
	}
	return s.update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(documentsBucket)
		return err
	})
}

// onlyKnown refuses a bucket of another name: one of ours that was renamed must not be taken for missing.
func onlyKnown(name []byte, _ *bbolt.Bucket) error {
	for _, known := range [][]byte{metaBucket, keysBucket, scopesBucket, documentsBucket} {
		if bytes.Equal(name, known) {
			return nil
		}
	}
	return errFormat
}

// checkMeta tells whether file, format and KEK belong together.
func (s *Store) checkMeta(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil || tx.Bucket(keysBucket) == nil || tx.Bucket(scopesBucket) == nil {
		return errFormat
	}
	if !bytes.Equal(meta.Get(formatName), formatValue) || tx.ForEach(onlyKnown) != nil {
		return errFormat
	}
	got, err := s.kek.Load().Decrypt(meta.Get(checkName), checkName)
	if err != nil || !bytes.Equal(got, checkValue) {
		return errors.New("the KEK does not fit: it belongs to another store, or one of the two is damaged")
	}
	return nil
}
