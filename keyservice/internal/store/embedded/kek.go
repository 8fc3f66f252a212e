// The key-encryption key: a Tink keyset in the clear, in a file that only the service may read.

package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const maxKeysetSize = 64 << 10

// kek is the keyset in use: it encrypts under its primary key and decrypts under each of its keys.
type kek struct {
	tink.AEAD

	prefix  []byte // of what the primary key encrypted
	version int    // number of keys
}

// createKEK makes a keyset file. The 192-bit nonce leaves no bound on the number of keys wrapped.
func createKEK(path string) error {
	handle, err := keyset.NewHandle(aead.XAES256GCM192BitNonceKeyTemplate())
	if err != nil {
		return fmt.Errorf("make a KEK: %w", err)
	}
	return writeKeyset(handle, func(data []byte) error { return files.CreateSecret(path, data) })
}

func writeKeyset(handle *keyset.Handle, write func([]byte) error) error {
	var buffer bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&buffer)); err != nil {
		return fmt.Errorf("write a KEK: %w", err)
	}
	defer clear(buffer.Bytes())
	return write(buffer.Bytes())
}

// readKEK reads a keyset file. Errors never hold its content.
func readKEK(path string) (*kek, error) {
	handle, err := readKeyset(path)
	if err != nil {
		return nil, err
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("the KEK file %s is not an AEAD keyset: restore it from a backup", path)
	}
	primary, err := handle.Primary()
	if err != nil {
		return nil, fmt.Errorf("the KEK file %s has no primary key: restore it from a backup", path)
	}
	return &kek{primitive, tinkPrefix(primary.KeyID()), handle.Len()}, nil
}

func readKeyset(path string) (*keyset.Handle, error) {
	data, err := files.ReadSecret(path, maxKeysetSize)
	if err != nil {
		return nil, fmt.Errorf("read the KEK: %w", err)
	}
	defer clear(data)
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(data)))
	if err != nil {
		return nil, fmt.Errorf("the KEK file %s is not a Tink keyset: restore it from a backup", path)
	}
	return handle, nil
}

// tinkPrefix is what Tink puts before a ciphertext, so that the key is known.
func tinkPrefix(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{1}, id) }

// isNewest tells whether something was encrypted under the primary key.
func (k *kek) isNewest(ciphertext []byte) bool { return bytes.HasPrefix(ciphertext, k.prefix) }

const wrapLabel = "cipherlane-keyservice data key v1\x00"

// associatedData binds a wrapped key to its id, its time and its scope, so that no record can be passed off as another
// [CL-API-010].
func associatedData(id datakey.ID, createdMillis int64, scope string) []byte {
	ad := append([]byte(wrapLabel), id[:]...)
	ad = binary.BigEndian.AppendUint64(ad, uint64(createdMillis)) // #nosec G115 -- only its bits count
	return append(ad, scope...)
}

const destroyedLabel = "cipherlane-keyservice destroyed key v1\x00"

// destroyedData is what the proof of a destroyed key's record binds.
func destroyedData(r store.Record) []byte {
	ad := append([]byte(destroyedLabel), r.ID[:]...)
	ad = binary.BigEndian.AppendUint64(ad, uint64(r.Created.UnixMilli()))   // #nosec G115 -- only its bits count
	ad = binary.BigEndian.AppendUint64(ad, uint64(r.Destroyed.UnixMilli())) // #nosec G115 -- as above
	return append(ad, r.Scope...)
}
