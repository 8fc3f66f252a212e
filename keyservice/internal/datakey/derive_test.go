package datakey

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/xaesgcm"
	"github.com/tink-crypto/tink-go/v2/insecuresecretdataaccess"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/secretdata"
	"github.com/tink-crypto/tink-go/v2/tink"
)

func tinkOf(t *testing.T, k *Key) tink.AEAD {
	t.Helper()
	parameters, err := xaesgcm.NewParameters(xaesgcm.VariantNoPrefix, PrefixSize)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xaesgcm.NewKey(secretdata.NewBytesFromData(k.bytes[:], insecuresecretdataaccess.Token{}), 0, parameters)
	if err != nil {
		t.Fatal(err)
	}
	manager := keyset.NewManager()
	id, err := manager.AddKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.SetPrimary(id); err != nil {
		t.Fatal(err)
	}
	handle, err := manager.Handle()
	if err != nil {
		t.Fatal(err)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		t.Fatal(err)
	}
	return primitive
}

// [CL-ENV-022]
func TestDerivedKeysAreThoseOfTink(t *testing.T) {
	for i := range 300 { // the top bit of L is set for half of them
		key, text, aad := Generate(), make([]byte, i), []byte("aad")
		reference := tinkOf(t, key)
		sealed, err := reference.Encrypt(text, aad)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := key.Decrypt(sealed, aad); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("what Tink wrote: %x %v", got, err)
		}
		var nonce [NonceSize]byte
		_, _ = rand.Read(nonce[:])
		derived, err := key.Derive([PrefixSize]byte(nonce[:]))
		if err != nil {
			t.Fatal(err)
		}
		ours := derived.Seal(nonce[:], nonce[PrefixSize:], text, aad)
		if got, err := reference.Decrypt(ours, aad); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("Tink reads what we wrote: %x %v", got, err)
		}
		sealed[i%len(sealed)] ^= 1
		if _, err := key.Decrypt(sealed, aad); err == nil {
			t.Fatal("a flipped bit was passed over")
		}
	}
	for n := range NonceSize + 16 {
		if _, err := Generate().Decrypt(make([]byte, n), nil); err == nil {
			t.Fatalf("%d bytes were decrypted", n)
		}
	}
}
