// The hash chain: every line carries its place in the chain and the hash of the line before (spec/audit.md).

package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Hash is the SHA-256 of a line without its end; that of nothing, all zeros, stands before the first.
type Hash [sha256.Size]byte

// String gives 64 lowercase hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Head is the last line of a chain: what an anchor kept elsewhere must hold.
type Head struct {
	Seq  uint64 // place of the line, from 1; 0 before the first
	Hash Hash
}

// String gives "SEQ:HASH".
func (h Head) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Hash.String() }

// ParseHead reads "SEQ:HASH".
func ParseHead(text string) (Head, error) {
	number, hash, _ := strings.Cut(text, ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || hex.DecodedLen(len(hash)) != sha256.Size || strings.ToLower(hash) != hash {
		return Head{}, fmt.Errorf("%q is not the head of an audit log: NUMBER:HASH, as audit verify prints it", text)
	}
	h := Head{Seq: seq}
	_, err = hex.Decode(h.Hash[:], []byte(hash))
	return h, err
}

// link appends the line that follows h: object, a JSON object with members, to which place and hash are added [CL-AUD-001].
// It gives the longer text and the new head.
func (h Head) link(text, object []byte) ([]byte, Head) {
	start := len(text)
	text = append(text, object[:len(object)-1]...)
	text = append(text, `,"seq":`...)
	text = strconv.AppendUint(text, h.Seq+1, 10)
	text = append(text, `,"prev":"`...)
	text = hex.AppendEncode(text, h.Hash[:])
	text = append(text, '"', '}')
	next := Head{Seq: h.Seq + 1, Hash: sha256.Sum256(text[start:])}
	return append(text, '\n'), next
}
