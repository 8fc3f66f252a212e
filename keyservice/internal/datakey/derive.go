// XAES-256-GCM (C2SP) over the standard library's AES-256-GCM: the first half of the nonce derives a key, which is kept by whoever
// has many records under it [CL-ENV-022]. Tests compare with Tink.

package datakey

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

// PrefixSize is that part of the nonce which derives the key for AES-256-GCM, NonceSize the whole nonce, in bytes.
const (
	PrefixSize = 12
	NonceSize  = 24
)

// Derive gives AES-256-GCM under the key that this one and the first 12 bytes of a nonce make; the last 12 are its nonce. The
// result outlives a wipe of this key: whoever keeps it lets it go at the end of the lease.
func (k *Key) Derive(prefix [PrefixSize]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.bytes[:])
	if err != nil {
		return nil, err
	}
	var derived [Size]byte
	defer clear(derived[:])
	k1 := subkey(block)
	for half := range 2 {
		m := [aes.BlockSize]byte{1: byte(half + 1), 2: 'X'}
		copy(m[4:], prefix[:])
		subtle.XORBytes(m[:], m[:], k1[:])
		block.Encrypt(derived[half*aes.BlockSize:], m[:])
	}
	of, err := aes.NewCipher(derived[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(of)
}

// subkey is K1 of CMAC: the block of zeros, encrypted, doubled in GF(2^128).
func subkey(block cipher.Block) [aes.BlockSize]byte {
	var l, k1 [aes.BlockSize]byte
	block.Encrypt(l[:], l[:])
	var carry byte
	for i := len(l) - 1; i >= 0; i-- {
		k1[i] = l[i]<<1 | carry
		carry = l[i] >> 7
	}
	k1[len(k1)-1] ^= carry * 0x87
	return k1
}

// Decrypt opens nonce, ciphertext and tag.
func (k *Key) Decrypt(sealed, aad []byte) ([]byte, error) {
	if len(sealed) < NonceSize {
		return nil, errShort
	}
	aead, err := k.Derive([PrefixSize]byte(sealed))
	if err != nil {
		return nil, err
	}
	return aead.Open([]byte{}, sealed[PrefixSize:NonceSize], sealed[NonceSize:], aad)
}
