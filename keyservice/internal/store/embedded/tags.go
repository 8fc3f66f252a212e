// Tags: nothing, encrypted under the KEK with the statement as associated data.

package embedded

import (
	"context"
	"encoding/base64"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// Tag implements store.Tags.
func (s *Store) Tag(ctx context.Context, statement []byte) (string, error) {
	tag, err := s.kek.Load().Encrypt(nil, append([]byte(store.TagLabel), statement...))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(tag), ctx.Err()
}

// CheckTag implements store.Tags.
func (s *Store) CheckTag(ctx context.Context, tag string, statement []byte) error {
	encrypted, err := base64.StdEncoding.DecodeString(tag)
	if err != nil {
		return store.ErrTag
	}
	if _, err := s.kek.Load().Decrypt(encrypted, append([]byte(store.TagLabel), statement...)); err != nil {
		return store.ErrTag
	}
	return ctx.Err()
}
