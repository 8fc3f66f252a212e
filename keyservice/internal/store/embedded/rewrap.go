// New versions of the KEK. The keyset file is replaced before anything is encrypted under its new key, and what was
// encrypted under older ones shows that by its prefix: so a rewrap that was cut off goes on where it stopped.

package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	kekName     = "embedded"
	rewrapBatch = 256 // keys in one transaction
)

// KEKNames implements store.KEKs: there is one for all scopes.
func (*Store) KEKNames(ctx context.Context) ([]string, error) { return []string{kekName}, ctx.Err() }

// KEKVersion implements store.KEKs.
func (s *Store) KEKVersion(ctx context.Context, _ string) (int, error) {
	return s.kek.Load().version, ctx.Err()
}

// AdvanceKEK implements store.KEKs.
func (s *Store) AdvanceKEK(ctx context.Context, _ string, version int) error {
	s.keks.Lock()
	defer s.keks.Unlock()
	for s.kek.Load().version < version {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.addKEK(); err != nil {
			return fmt.Errorf("make a new version of the KEK: %w", err)
		}
	}
	return nil
}

func (s *Store) addKEK() error {
	handle, err := readKeyset(s.paths.KEK)
	if err != nil {
		return err
	}
	manager := keyset.NewManagerFromHandle(handle)
	id, err := manager.Add(aead.XAES256GCM192BitNonceKeyTemplate())
	if err == nil {
		err = manager.SetPrimary(id)
	}
	if err != nil {
		return err
	}
	if handle, err = manager.Handle(); err != nil {
		return err
	}
	if err := writeKeyset(handle, func(data []byte) error { return files.ReplaceSecret(s.paths.KEK, data) }); err != nil {
		return err
	}
	next, err := readKEK(s.paths.KEK)
	if err != nil {
		return err
	}
	s.kek.Store(next)
	return nil
}

// Rewrap implements store.KEKs. It passes over all keys until there is none to rewrap: one may have been wrapped under
// the older key and stored after.
func (s *Store) Rewrap(ctx context.Context, _ string, done func(keys int)) error {
	for more := true; more; {
		rewrapped := 0
		for at, last := []byte(nil), false; !last; last = at == nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			var keys int
			err := s.update(func(tx *bbolt.Tx) (err error) {
				at, keys, err = s.rewrapKeys(tx, at)
				return err
			})
			if err != nil {
				return fmt.Errorf("rewrap: %w", err)
			}
			rewrapped += keys
			done(keys)
		}
		more = rewrapped > 0
	}
	return s.rewrapRest()
}

// rewrapRest does what is not a key, and overwrites what was wrapped under older keys.
func (s *Store) rewrapRest() error {
	err := s.update(func(tx *bbolt.Tx) error { return errors.Join(s.putCheck(tx), s.rewrapDocuments(tx)) })
	if err != nil {
		return fmt.Errorf("rewrap: %w", err)
	}
	return s.overwriteFree()
}

// rewrapKeys does the next keys from a place on, and gives the place to go on from: nil at the end.
func (s *Store) rewrapKeys(tx *bbolt.Tx, from []byte) (next []byte, keys int, err error) {
	var batch []store.Record
	cursor := tx.Bucket(keysBucket).Cursor()
	kid, value := cursor.Seek(from)
	for ; kid != nil && len(batch) < rewrapBatch; kid, value = cursor.Next() {
		r, proof, err := decodeStored(datakey.ID(kid), value)
		if err != nil {
			return nil, 0, err
		}
		if !s.kek.Load().isNewest(append(proof, r.Wrapped...)) { // one of the two is empty
			batch = append(batch, r)
		}
	}
	next = bytes.Clone(kid)
	for _, r := range batch {
		if err := s.rewrapKey(tx, r); err != nil {
			return nil, 0, err
		}
		if !r.IsDestroyed() {
			keys++
		}
	}
	return next, keys, nil
}

func (s *Store) rewrapKey(tx *bbolt.Tx, r store.Record) error {
	if r.IsDestroyed() {
		return s.putRecord(tx, r)
	}
	ad := associatedData(r.ID, r.Created.UnixMilli(), r.Scope)
	key, err := datakey.Unwrap(s.kek.Load(), r.Wrapped, ad, r.ID)
	if err != nil {
		return err
	}
	defer key.Wipe()
	if r.Wrapped, err = key.Wrap(s.kek.Load(), ad); err != nil {
		return err
	}
	return s.putRecord(tx, r)
}

func (s *Store) rewrapDocuments(tx *bbolt.Tx) error {
	var names [][]byte
	_ = tx.Bucket(documentsBucket).ForEach(func(name, value []byte) error {
		if !s.kek.Load().isNewest(value) {
			names = append(names, bytes.Clone(name))
		}
		return nil
	})
	for _, name := range names {
		data, version, err := s.documentOf(tx, name)
		if err != nil {
			return err
		}
		if err := s.putDocument(tx, name, version, data); err != nil {
			return err
		}
	}
	return nil
}
