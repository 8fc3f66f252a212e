// The command inspect: an envelope, field by field. It needs neither keys nor a key service.

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

type inspectCommand struct {
	Value string `arg:"" optional:"" help:"The record value in hexadecimal or base64. Without it, or as -, it is read from standard input."`
	File  string `type:"existingfile" placeholder:"FILE" help:"A file with the value: its bytes, hexadecimal or base64."`
	As    string `enum:"auto,hex,base64,raw" default:"auto" placeholder:"FORM" help:"How the value is written: auto, hex, base64 or raw (default: ${default})."`
}

// field is one part of an envelope.
type envelopeField struct {
	Offset  int    `json:"offset"`
	Size    int    `json:"size"`
	Name    string `json:"field"`
	Bytes   string `json:"bytes"`
	Meaning string `json:"meaning"`
}

// explained is what is said of a value.
type explained struct {
	Size     int             `json:"size"`
	Envelope bool            `json:"envelope"` // it starts with the magic
	Fields   []envelopeField `json:"fields"`
	Error    *explainedError `json:"error,omitzero"`
}

type explainedError struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// maxValue is the largest value read: the highest limit of spec/limits.md, in base64 or hexadecimal.
const maxValue = 2 << 30

// Run explains.
func (c *inspectCommand) Run(g *Globals, s *commandline.Streams) error {
	value, err := c.read(s.In)
	if err != nil {
		return err
	}
	found := explain(value)
	if g.JSON {
		err = printJSON(s.Out, found)
	} else {
		err = found.print(s.Out)
	}
	switch {
	case err != nil:
		return err
	case found.Error != nil:
		return fmt.Errorf("%s: %s", found.Error.Code, found.Error.Detail)
	case !found.Envelope:
		return errors.New("not an envelope: a value that does not start with C1 9E is plaintext")
	}
	return nil
}

func (c *inspectCommand) read(in io.Reader) ([]byte, error) {
	if c.Value != "" && c.Value != "-" {
		if c.File != "" {
			return nil, errors.New("give a value or --file, not both")
		}
		return decodeValue([]byte(c.Value), c.As)
	}
	if c.File != "" {
		f, err := os.Open(c.File) // #nosec G304 -- the operator's path
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxValue+1))
	if err == nil && len(data) > maxValue {
		err = fmt.Errorf("more than %d bytes: no record is as large", maxValue)
	}
	if err != nil {
		return nil, err
	}
	return decodeValue(data, c.As)
}

func decodeValue(data []byte, form string) ([]byte, error) {
	if form == "raw" || form == "auto" && envelope.Is(data) {
		return data, nil
	}
	text := bytes.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, data)
	if form != "base64" {
		if value, err := hex.DecodeString(strings.TrimPrefix(string(text), "0x")); err == nil {
			return value, nil
		}
	}
	if form != "hex" {
		plain := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(string(text))
		if value, err := base64.RawStdEncoding.DecodeString(plain); err == nil {
			return value, nil
		}
	}
	return nil, errors.New("the value is neither hexadecimal nor base64 (--as raw takes bytes as they are)")
}

// explain names every field that is there, also of an envelope that a reader must refuse.
func explain(value []byte) explained {
	found := explained{Size: len(value), Envelope: envelope.Is(value), Fields: []envelopeField{}}
	if !found.Envelope {
		return found
	}
	add := func(name string, offset, size int, meaning func(part []byte) string) {
		if end := min(offset+size, len(value)); offset < end {
			part := value[offset:end]
			text := fmt.Sprintf("cut off: %d of %d bytes", len(part), size)
			if len(part) == size {
				text = meaning(part)
			}
			found.Fields = append(found.Fields, envelopeField{offset, len(part), name, shortHex(part), text})
		}
	}
	add("magic", 0, envelope.MagicSize, func([]byte) string { return "an envelope" })
	add("version", 2, 1, func(b []byte) string { return fmt.Sprintf("version %d", b[0]) })
	if _, err := envelope.Parse(value); err != nil {
		found.Error = explainedErrorOf(err)
		if found.Error.Code == string(envelope.UnsupportedVersion) {
			return found // what follows may mean anything
		}
	}
	add("flags", 3, 1, explainFlags)
	add("kid", 4, envelope.HeaderSize-4, func([]byte) string { return "key id: names the data key and commits to it" })
	add("nonce: session", envelope.HeaderSize, envelope.SessionSize, func([]byte) string { return "random, drawn once in an encrypting session" })
	add("nonce: counter", envelope.HeaderSize+envelope.SessionSize, 4, func(b []byte) string {
		return fmt.Sprintf("record %d of the session, counted from 0", uint32(b[0])<<24|uint32(b[1])<<16|uint32(b[2])<<8|uint32(b[3]))
	})
	body := envelope.HeaderSize + envelope.NonceSize
	if rest := len(value) - body - envelope.TagSize; rest >= 0 && len(value) >= envelope.MinSize {
		add("ciphertext", body, rest, func(b []byte) string { return fmt.Sprintf("%d bytes, as many as were encrypted", len(b)) })
		add("tag", body+rest, envelope.TagSize, func([]byte) string { return "over header, scope, ciphertext, and the record key if bound" })
	}
	return found
}

func explainedErrorOf(err error) *explainedError {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return &explainedError{string(r.Code), r.Detail}
	}
	return &explainedError{string(refusal.Internal), err.Error()}
}

func explainFlags(b []byte) string {
	compression := [...]string{"not compressed", "zstd", "UNKNOWN compression 2", "UNKNOWN compression 3"}[b[0]&3]
	text := compression + map[bool]string{true: ", record key bound", false: ", record key not bound"}[b[0]&4 != 0]
	if unknown := b[0] & 0xF8; unknown != 0 {
		text += fmt.Sprintf(", UNKNOWN bits %08b", unknown)
	}
	return text
}

// shortHex shows the beginning and the end of what is long.
func shortHex(b []byte) string {
	const shown = 20
	if len(b) <= shown {
		return hex.EncodeToString(b)
	}
	return hex.EncodeToString(b[:8]) + "..." + hex.EncodeToString(b[len(b)-8:])
}

func (e explained) print(out io.Writer) error {
	if !e.Envelope {
		_, err := fmt.Fprintf(out, "%d bytes of plaintext. Readers take it only where the policy says plaintext: accept.\n", e.Size)
		return err
	}
	t := newTable("OFFSET", "SIZE", "FIELD", "BYTES", "MEANING")
	for _, f := range e.Fields {
		t.row(strconv.Itoa(f.Offset), strconv.Itoa(f.Size), f.Name, f.Bytes, f.Meaning)
	}
	if err := t.print(out); err != nil {
		return err
	}
	text := fmt.Sprintf("\n%d bytes in all. A reader must refuse this value.\n", e.Size)
	if e.Error == nil {
		text = fmt.Sprintf("\n%d bytes in all; %d are overhead. Bytes 20 to the end are a Tink X-AES-GCM ciphertext.\n", e.Size, envelope.MinSize)
	}
	_, err := io.WriteString(out, text)
	return err
}
