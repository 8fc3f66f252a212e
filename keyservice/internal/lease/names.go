// Package lease knows who has which lease, and what is revoked (spec/operator.md). What is revoked stands in the store
// and is read by every replica; the leases themselves are only remembered, for those who want to see them.
package lease

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Names say what a lease, or a revocation, is about. In a revocation an empty name stands for any.
type Names struct {
	Principal string `json:"principal,omitzero"`
	Scope     string `json:"scope,omitzero"`
	Action    string `json:"action,omitzero"` // encrypt or decrypt
}

// ID is the first half of the SHA-256 over the names, each with its length before it, in hexadecimal.
func (n Names) ID() string {
	sum := sha256.New()
	for _, name := range []string{n.Principal, n.Scope, n.Action} {
		size := binary.BigEndian.AppendUint32(nil, uint32(len(name))) // #nosec G115 -- names are short
		_, _ = sum.Write(append(size, name...))
	}
	return hex.EncodeToString(sum.Sum(nil)[:sha256.Size/2])
}

// coveredBy gives the names of the revocations that would cover these.
func (n Names) coveredBy() [4]Names {
	return [4]Names{{Principal: n.Principal}, {Scope: n.Scope}, {Principal: n.Principal, Scope: n.Scope}, n}
}
