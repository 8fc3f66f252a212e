package reference

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/xaesgcm"
	"github.com/tink-crypto/tink-go/v2/insecuresecretdataaccess"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/secretdata"
	"github.com/tink-crypto/tink-go/v2/tink"
)

const keySize = 32

// KeyID is the kid of a data key [CL-ENV-020].
func KeyID(key []byte) (string, error) {
	kid, err := hkdf.Key(sha256.New, key, nil, "cipherlane v1 key id", 16)
	return hex.EncodeToString(kid), err
}

// newCipher is Tink's X-AES-GCM, whose ciphertexts with a salt of 12 bytes are XAES-256-GCM's [CL-ENV-022].
func newCipher(key []byte) (tink.AEAD, error) {
	parameters, err := xaesgcm.NewParameters(xaesgcm.VariantNoPrefix, 12)
	if err != nil {
		return nil, err
	}
	secret := secretdata.NewBytesFromData(key, insecuresecretdataaccess.Token{})
	xaesKey, err := xaesgcm.NewKey(secret, 0, parameters)
	if err != nil {
		return nil, err
	}
	manager := keyset.NewManager()
	id, err := manager.AddKey(xaesKey)
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
	return aead.New(handle)
}
