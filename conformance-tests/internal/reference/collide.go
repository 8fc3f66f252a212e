package reference

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"math/bits"
)

// Forged is an envelope whose ciphertext GCM accepts under two data keys. Its kid is that of the first.
type Forged struct{ Envelope []byte }

// Collide makes one. GCM does not commit to its key: with both keys known, one block of ciphertext is chosen so that the tags
// under both are the same (Dodis, Grubbs, Ristenpart and Woodage, "Fast Message Franking", 2018, section 4). It is checked
// with Tink under both keys before it is returned.
//
//	prefix  ciphertext before the chosen block; its size is a multiple of 16 bytes
//	nonce   24 bytes
func Collide(one, other []byte, scope string, prefix, nonce []byte) (Forged, error) {
	kid, err := KeyID(one)
	if err != nil {
		return Forged{}, err
	}
	header, err := newHeader(kid, 0)
	if err != nil {
		return Forged{}, err
	}
	aad := additionalData(header, scope, nil)
	first, second := newHash(one, nonce), newHash(other, nonce)
	// tag = (GHASH of everything but the block) + block * H^2 + E(J0), the same for both keys.
	difference := xor(first.tagWithout(aad, prefix), second.tagWithout(aad, prefix))
	squares := xor(multiply(first.h, first.h), multiply(second.h, second.h))
	block := multiply(difference, inverse(squares))
	tag := xor(first.tagWithout(aad, prefix), multiply(block, multiply(first.h, first.h)))
	ciphertext := append(append([]byte{}, nonce...), prefix...)
	ciphertext = append(append(ciphertext, block.bytes()...), tag.bytes()...)
	for _, key := range [][]byte{one, other} {
		if err := opens(key, ciphertext, aad); err != nil {
			return Forged{}, errors.Join(errors.New("the forged ciphertext is not valid under both keys"), err)
		}
	}
	return Forged{append(header, ciphertext...)}, nil
}

func opens(key, ciphertext, aad []byte) error {
	c, err := newCipher(key)
	if err == nil {
		_, err = c.Decrypt(ciphertext, aad)
	}
	return err
}

// element of GF(2^128) as GCM writes it: the first bit is the coefficient of x^0.
type element struct{ high, low uint64 }

func toElement(block []byte) element {
	var padded [16]byte
	copy(padded[:], block)
	return element{binary.BigEndian.Uint64(padded[:8]), binary.BigEndian.Uint64(padded[8:])}
}

func (e element) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, e.high), e.low)
}

func xor(a, b element) element { return element{a.high ^ b.high, a.low ^ b.low} }

// multiply is algorithm 1 of NIST SP 800-38D. Not in constant time: these keys are a test's.
func multiply(a, b element) (product element) {
	for range 128 {
		if bits.LeadingZeros64(a.high) == 0 {
			product = xor(product, b)
		}
		a = element{a.high<<1 | a.low>>63, a.low << 1}
		carry := b.low & 1
		b = element{b.high >> 1, b.low>>1 | b.high<<63}
		if carry == 1 {
			b.high ^= 0xe1 << 56
		}
	}
	return product
}

// inverse is a^(2^128 - 2).
func inverse(a element) element {
	result := element{high: 1 << 63} // one
	for range 127 {
		a = multiply(a, a)
		result = multiply(result, a)
	}
	return result
}

// hash is GHASH's key and the mask of the tag, for one data key and nonce.
type hash struct{ h, mask element }

func newHash(key, nonce []byte) hash {
	block := newBlock(derive(key, nonce[:12]))
	var h, mask [16]byte
	block.Encrypt(h[:], h[:])
	block.Encrypt(mask[:], append(append([]byte{}, nonce[12:]...), 0, 0, 0, 1))
	return hash{toElement(h[:]), toElement(mask[:])}
}

// tagWithout is the tag if the last block of ciphertext were zero.
func (g hash) tagWithout(aad, prefix []byte) element {
	var sum element
	for _, part := range [][]byte{aad, append(append([]byte{}, prefix...), make([]byte, 16)...)} {
		for len(part) > 0 {
			n := min(16, len(part))
			sum = multiply(xor(sum, toElement(part[:n])), g.h)
			part = part[n:]
		}
	}
	lengths := element{uint64(len(aad)) * 8, uint64(len(prefix)+16) * 8}
	return xor(multiply(xor(sum, lengths), g.h), g.mask)
}

// derive is the key of AES-256-GCM that XAES-256-GCM derives, as envelope.md writes it out.
func derive(key, salt []byte) []byte {
	block := newBlock(key)
	k1 := make([]byte, 16)
	block.Encrypt(k1, k1)
	carry := byte(0)
	for i := 15; i >= 0; i-- {
		k1[i], carry = k1[i]<<1|carry, k1[i]>>7
	}
	k1[15] ^= carry * 0x87
	derived := make([]byte, 0, 32)
	for counter := range byte(2) {
		m := append([]byte{0, counter + 1, 'X', 0}, salt...)
		for i := range m {
			m[i] ^= k1[i]
		}
		block.Encrypt(m, m)
		derived = append(derived, m...)
	}
	return derived
}

func newBlock(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 32 bytes
	}
	return block
}
