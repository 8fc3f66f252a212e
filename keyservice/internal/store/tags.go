// Tags: statements that only the key service can have made.

package store

import (
	"context"
	"errors"
)

// ErrTag says that a tag was not made for a statement: somebody else wrote one of the two.
var ErrTag = errors.New("the statement was not made by this key service")

// Tags bind statements to a KEK, so that who can write to the store alone cannot make one.
type Tags interface {
	// Tag gives a tag for a statement.
	Tag(ctx context.Context, statement []byte) (string, error)
	// CheckTag gives ErrTag unless Tag gave the tag for that statement.
	CheckTag(ctx context.Context, tag string, statement []byte) error
}

// TagLabel keeps statements apart from everything else that a KEK encrypts.
const TagLabel = "cipherlane-keyservice tag v1\x00"
