// Keys that the key service gave.

package datakey

import (
	"encoding/base64"
	"errors"
)

// ErrMalformed and ErrMismatch tell what is wrong with a key that was received (spec/errors.md: key-malformed, key-id-mismatch).
var (
	ErrMalformed = errors.New("not a data key of 32 bytes in base64")
	ErrMismatch  = errors.New("the key does not hash to its kid")
	errShort     = errors.New("too short for a nonce")
)

// Receive takes a key from an answer of the key service and checks that it hashes to its id [CL-KEY-004].
func Receive(text string, want ID) (*Key, error) {
	plain, err := base64.StdEncoding.Strict().DecodeString(text)
	defer clear(plain)
	if err != nil || len(plain) != Size {
		return nil, ErrMalformed
	}
	k, err := Parse(plain, want)
	if err != nil {
		return nil, ErrMismatch
	}
	return k, nil
}
