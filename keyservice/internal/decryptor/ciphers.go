// Derived keys, kept by key and first half of the nonce: one for each encrypting session that is read.

package decryptor

import (
	"crypto/cipher"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
)

const maxDerived = 4096 // spec/limits.md

type derivedFrom struct {
	kid    datakey.ID
	prefix [datakey.PrefixSize]byte
}

// Ciphers is a bounded cache. It is safe for concurrent use; nil keeps nothing.
type Ciphers struct {
	mu  sync.Mutex
	lru *simplelru.LRU[derivedFrom, cipher.AEAD]
}

// NewCiphers makes an empty cache. Forget must be told when keys end.
func NewCiphers() (*Ciphers, error) {
	lru, err := simplelru.NewLRU[derivedFrom, cipher.AEAD](maxDerived, nil)
	return &Ciphers{lru: lru}, err
}

// Forget lets go what was derived from a key: its lease ended.
func (c *Ciphers) Forget(kid datakey.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.lru.Keys() {
		if at.kid == kid {
			c.lru.Remove(at)
		}
	}
}

func (c *Ciphers) of(e *envelope.Envelope, key *datakey.Key) (cipher.AEAD, error) {
	at := derivedFrom{e.Kid, [datakey.PrefixSize]byte(e.Nonce)}
	if c == nil {
		return key.Derive(at.prefix)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if aead, there := c.lru.Get(at); there {
		return aead, nil
	}
	aead, err := key.Derive(at.prefix)
	if err == nil && key.Held() { // else Forget has been told already
		c.lru.Add(at, aead)
	}
	return aead, err
}
