// Verifying a store when it is opened.

package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

// verify walks all buckets and unwraps every key.
func (s *Store) verify() error {
	if err := s.view(s.checkMeta); err != nil {
		return err
	}
	if err := s.addDocuments(); err != nil {
		return err
	}
	return s.view(func(tx *bbolt.Tx) error {
		scopes, err := s.verifyKeys(tx)
		if err != nil {
			return err
		}
		return errors.Join(verifyScopes(tx, scopes), s.verifyDocuments(tx))
	})
}

// verifyKeys unwraps every key that is not destroyed and gives the scopes that they have.
func (s *Store) verifyKeys(tx *bbolt.Tx) (map[string]bool, error) {
	scopes := map[string]bool{}
	keys := tx.Bucket(keysBucket)
	err := keys.ForEach(func(kid, value []byte) error {
		if len(kid) != datakey.IDSize || !bytes.Equal(keys.Get(kid), value) {
			return errors.New("a key is not where it belongs")
		}
		r, proof, err := decodeStored(datakey.ID(kid), value)
		if err != nil {
			return err
		}
		scopes[r.Scope] = true
		if r.IsDestroyed() {
			if _, err := s.kek.Load().Decrypt(proof, destroyedData(r)); err != nil {
				return fmt.Errorf("the record of the destroyed key %s is damaged: %w", r.ID, err)
			}
			return nil
		}
		key, err := s.unwrap(context.Background(), r)
		if err == nil {
			key.Wipe()
		}
		return err
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
