// What a scan counts.

package scan

import (
	"errors"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Counts are those of a partition, or of all.
type Counts struct {
	Records   int64            `json:"records"`
	Encrypted int64            `json:"encrypted"` // well-formed envelopes
	Decrypted int64            `json:"decrypted"` // of them, those that could be decrypted; 0 where that was not tried
	Plaintext int64            `json:"plaintext"`
	Null      int64            `json:"null"`
	Kids      map[string]int64 `json:"kids"`  // well-formed envelopes by key id
	Codes     map[string]int64 `json:"codes"` // records that cannot be read, by code of spec/errors.md
}

// Partition is one partition's.
type Partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Begin     int64  `json:"begin"` // offsets from, and up to but without
	End       int64  `json:"end"`
	Counts
	FirstPlaintext *int64 `json:"first_plaintext,omitzero"` // offsets
	FirstBad       *int64 `json:"first_unreadable,omitzero"`
}

// Report is the result.
type Report struct {
	Tried      bool         `json:"decryption_tried"`
	Partitions []*Partition `json:"partitions"`
	Total      Counts       `json:"total"`
	// KeyCodes tells for each key that the key service did not give why.
	KeyCodes map[string]string `json:"key_codes,omitempty"`
}

func newCounts() Counts { return Counts{Kids: map[string]int64{}, Codes: map[string]int64{}} }

// Bad gives how many records cannot be read.
func (c *Counts) Bad() int64 {
	var n int64
	for _, count := range c.Codes {
		n += count
	}
	return n
}

func (c *Counts) add(o Counts) {
	c.Records += o.Records
	c.Encrypted += o.Encrypted
	c.Decrypted += o.Decrypted
	c.Plaintext += o.Plaintext
	c.Null += o.Null
	for kid, n := range o.Kids {
		c.Kids[kid] += n
	}
	for code, n := range o.Codes {
		c.Codes[code] += n
	}
}

func (p *Partition) bad(offset int64, err error) {
	p.Codes[string(codeOf(err))]++
	if p.FirstBad == nil {
		p.FirstBad = &offset
	}
}

// codeOf gives the code of spec/errors.md.
func codeOf(err error) refusal.Code {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r.Code
	}
	return refusal.Internal
}

// State says of a key what the scan learned.
func (r *Report) State(kid string) string {
	switch code, refused := r.KeyCodes[kid]; {
	case refused:
		return code
	case r.Tried:
		return "given"
	default:
		return "not asked for"
	}
}
