// Package token makes bootstrap tokens, with which a principal gets its first certificate [CL-IDN-010]. What is kept of
// one is its hash only.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// Limits of a token's life, and the one that holds when nothing is said (spec/limits.md).
const (
	MinLife     = time.Second
	MaxLife     = 604_800 * time.Second
	DefaultLife = time.Hour
)

// Prefix tells bootstrap tokens from JWTs, and tells a scanner for leaked secrets what it has found.
const Prefix = "clbt_"

const secretSize = 32

// Hash is what a token is known by.
type Hash [sha256.Size]byte

// New makes a token of 256 random bits, and its hash.
func New() (string, Hash) {
	var secret [secretSize]byte
	_, _ = rand.Read(secret[:]) // it never fails: the process ends first
	text := Prefix + base64.RawURLEncoding.EncodeToString(secret[:])
	clear(secret[:])
	return text, sha256.Sum256([]byte(text))
}

// Parse gives the hash of a text that has the form of a token.
func Parse(text string) (Hash, bool) {
	encoded, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(encoded) != base64.RawURLEncoding.EncodedLen(secretSize) {
		return Hash{}, false
	}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(encoded); err != nil || strings.ContainsAny(encoded, "\r\n") {
		return Hash{}, false
	}
	return sha256.Sum256([]byte(text)), true
}
