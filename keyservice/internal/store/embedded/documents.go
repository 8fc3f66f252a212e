// Documents in the bbolt file: encrypted under the KEK, bound to their names, with the version in front.

package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	documentLabel = "cipherlane-keyservice document v1\x00"
	versionSize   = 8
)

func documentName(kind, key string) []byte { return []byte(kind + "/" + key) }

// ReadDocument implements store.Documents.
func (s *Store) ReadDocument(ctx context.Context, kind, key string) (data []byte, version int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	err = s.view(func(tx *bbolt.Tx) (err error) {
		data, version, err = s.documentOf(tx, documentName(kind, key))
		return err
	})
	return data, version, err
}

// WriteDocument implements store.Documents.
func (s *Store) WriteDocument(ctx context.Context, kind, key string, version int, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(data) > store.MaxDocument {
		return fmt.Errorf("document %s/%s has %d bytes, more than %d", kind, key, len(data), store.MaxDocument)
	}
	name := documentName(kind, key)
	return s.update(func(tx *bbolt.Tx) error {
		_, last, err := s.documentOf(tx, name)
		if err != nil {
			return err
		}
		if last != version {
			return store.ErrConflict
		}
		return s.putDocument(tx, name, version+1, data)
	})
}

func (s *Store) documentOf(tx *bbolt.Tx, name []byte) (data []byte, version int, err error) {
	value := tx.Bucket(documentsBucket).Get(name)
	if value == nil {
		return nil, 0, nil
	}
	plain, err := s.kek.Load().Decrypt(value, append([]byte(documentLabel), name...))
	if err != nil || len(plain) < versionSize {
		return nil, 0, errors.Join(fmt.Errorf("document %s is damaged", name), err)
	}
	return plain[versionSize:], int(binary.BigEndian.Uint64(plain)), nil // #nosec G115 -- it counts writes
}

func (s *Store) putDocument(tx *bbolt.Tx, name []byte, version int, data []byte) error {
	plain := binary.BigEndian.AppendUint64(nil, uint64(version)) // #nosec G115 -- as above
	value, err := s.kek.Load().Encrypt(append(plain, data...), append([]byte(documentLabel), name...))
	if err != nil {
		return fmt.Errorf("encrypt document %s: %w", name, err)
	}
	return tx.Bucket(documentsBucket).Put(name, value)
}

// verifyDocuments decrypts every document.
func (s *Store) verifyDocuments(tx *bbolt.Tx) error {
	return tx.Bucket(documentsBucket).ForEach(func(name, _ []byte) error {
		_, _, err := s.documentOf(tx, name)
		return err
	})
}
