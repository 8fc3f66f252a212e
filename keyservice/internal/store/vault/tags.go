// Tags: a fixed text, encrypted by transit with the statement as associated data.

package vault

import (
	"bytes"
	"context"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

var tagText = []byte("cipherlane tag")

// Tag implements store.Tags.
func (s *Store) Tag(ctx context.Context, statement []byte) (string, error) {
	results, err := s.transit.batch(ctx, "encrypt", metaKEK, []item{{Plaintext: tagText, AssociatedData: append([]byte(store.TagLabel), statement...)}})
	if err != nil {
		return "", err
	}
	if results[0].Error != "" || !isWrapped(results[0].Ciphertext) {
		return "", &Error{Reason: BadAnswer, Op: "encrypt under " + metaKEK, Text: shorten(results[0].Error)}
	}
	return results[0].Ciphertext, nil
}

// CheckTag implements store.Tags.
func (s *Store) CheckTag(ctx context.Context, tag string, statement []byte) error {
	if !isWrapped(tag) {
		return store.ErrTag
	}
	results, err := s.transit.batch(ctx, "decrypt", metaKEK, []item{{Ciphertext: tag, AssociatedData: append([]byte(store.TagLabel), statement...)}})
	if err != nil {
		return err
	}
	if results[0].Error != "" || !bytes.Equal(results[0].Plaintext, tagText) {
		return store.ErrTag
	}
	return nil
}
