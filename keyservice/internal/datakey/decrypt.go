// Opening what was encrypted under a data key: XAES-256-GCM by Tink [CL-ENV-022].

package datakey

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/xaesgcm"
	"github.com/tink-crypto/tink-go/v2/insecuresecretdataaccess"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/secretdata"
)

// saltSize is that part of the nonce which derives the key for AES-256-GCM, in bytes.
const saltSize = 12

// ErrMalformed and ErrMismatch tell what is wrong with a key that was received (spec/errors.md: key-malformed, key-id-mismatch).
var (
	ErrMalformed = errors.New("not a data key of 32 bytes in base64")
	ErrMismatch  = errors.New("the key does not hash to its kid")
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

// Decrypt opens nonce, ciphertext and tag.
func (k *Key) Decrypt(sealed, aad []byte) ([]byte, error) {
	parameters, err := xaesgcm.NewParameters(xaesgcm.VariantNoPrefix, saltSize)
	if err != nil {
		return nil, err
	}
	key, err := xaesgcm.NewKey(secretdata.NewBytesFromData(k.bytes[:], insecuresecretdataaccess.Token{}), 0, parameters)
	if err != nil {
		return nil, err
	}
	manager := keyset.NewManager()
	id, err := manager.AddKey(key)
	if err != nil {
		return nil, err
	}
	if err := manager.SetPrimary(id); err != nil {
		return nil, err
	}
	handle, err := manager.Handle()
	if err != nil {
		return nil, err
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("XAES-256-GCM: %w", err)
	}
	return primitive.Decrypt(sealed, aad)
}
