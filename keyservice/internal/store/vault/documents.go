// What the service keeps beside the keys, in KV.

package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// textDocument wraps a document, so that KV has an object to store whatever it is.
type textDocument struct {
	Key      string         `json:"key"`
	Document jsontext.Value `json:"document"`
}

// ReadDocument implements store.Documents.
func (s *Store) ReadDocument(ctx context.Context, kind, key string) (data []byte, version int, err error) {
	name := documentName(kind, key)
	var d textDocument
	version, err = s.kv.read(ctx, name, &d)
	switch {
	case errors.Is(err, errAbsent): // of a store that is there: an emptied one must not look like one without revocations
		_, err := s.readMeta(ctx)
		return nil, 0, err
	case err != nil:
		return nil, 0, err
	case d.Key != key:
		return nil, 0, damaged("GET "+name, "it is of %q", d.Key)
	default:
		return d.Document, version, nil
	}
}

// WriteDocument implements store.Documents.
func (s *Store) WriteDocument(ctx context.Context, kind, key string, version int, data []byte) error {
	if len(data) > store.MaxDocument {
		return fmt.Errorf("document %s/%s has %d bytes, more than %d", kind, key, len(data), store.MaxDocument)
	}
	_, err := s.kv.write(ctx, documentName(kind, key), version, textDocument{key, data})
	if reasonOf(err) == Conflict {
		return errors.Join(store.ErrConflict, err)
	}
	return err
}
