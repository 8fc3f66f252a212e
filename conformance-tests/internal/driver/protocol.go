// Package driver speaks the protocol of spec/conformance.md: the messages (this file), a driver as a child process
// (process.go) and the loop that a driver in Go runs (serve.go).
package driver

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Operations of spec/conformance.md.
const (
	OpHello       = "hello"
	OpOpen        = "open"
	OpEncrypt     = "encrypt"
	OpDecrypt     = "decrypt"
	OpDecryptAll  = "decrypt-all"
	OpXAESDecrypt = "xaes-decrypt"
	OpPrimitive   = "primitive"
	OpProduce     = "produce"
	OpConsume     = "consume"
	OpLoad        = "load"
	OpSoakWrite   = "soak-write"
	OpSoakRead    = "soak-read"
	OpRotate      = "rotate"
	OpReport      = "report"
)

// Codes that are not the SDK's.
const (
	CodeDriver               = "driver"
	CodeUnsupportedOperation = "unsupported-operation"
)

// MaxLine is the longest line either side sends, in bytes.
const MaxLine = 16 << 20

// Bytes are hexadecimal in JSON; nil is null.
type Bytes []byte

// MarshalJSON writes hexadecimal or null.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(hex.EncodeToString(b))
}

// UnmarshalJSON reads what MarshalJSON writes; an empty text is empty, not nil.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		*b = nil
		return err
	}
	decoded, err := hex.DecodeString(*text)
	if err != nil {
		return fmt.Errorf("bytes: %w", err)
	}
	*b = append(Bytes{}, decoded...)
	return nil
}

// RecordKey is what a driver knows of a record's key. A nil *RecordKey is "not known"; Bytes nil is a null key.
type RecordKey struct{ Bytes }

// Key is a record key that is known.
func Key(bytes []byte) *RecordKey { return &RecordKey{bytes} }

// Request is one line to a driver. Members that an operation does not have are left out.
type Request struct {
	ID            int               `json:"id"`
	Op            string            `json:"op"`
	Settings      map[string]string `json:"settings,omitempty"`
	Topic         string            `json:"topic"`
	Value         json.RawMessage   `json:"value,omitempty"`
	Values        []Bytes           `json:"values,omitempty"`
	RecordKey     json.RawMessage   `json:"record_key,omitempty"`
	Key           Bytes             `json:"key,omitempty"`
	Nonce         Bytes             `json:"nonce,omitempty"`
	AAD           Bytes             `json:"aad,omitempty"`
	Ciphertext    Bytes             `json:"ciphertext,omitempty"`
	Name          string            `json:"name,omitempty"`
	Input         Bytes             `json:"input,omitempty"`
	Size          int               `json:"size,omitempty"`
	Records       []Record          `json:"records,omitempty"`
	Transaction   string            `json:"transaction,omitempty"`
	Count         int               `json:"count,omitempty"`
	Rate          int               `json:"rate,omitempty"`
	TimeoutMillis int               `json:"timeout_ms,omitempty"`
	While         string            `json:"while,omitempty"`
}

// Header is a record header; a nil value is null.
type Header struct {
	Name  string
	Value Bytes
}

// MarshalJSON writes [name, value].
func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Name, h.Value}) }

// UnmarshalJSON reads [name, value].
func (h *Header) UnmarshalJSON(data []byte) error {
	pair := [2]json.RawMessage{}
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if err := json.Unmarshal(pair[0], &h.Name); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &h.Value)
}

// Record is a record to produce, or one that was consumed: then with its place, and Error in place of Value where it could
// not be read.
type Record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Key       Bytes    `json:"key"`
	Value     Bytes    `json:"value"`
	Headers   []Header `json:"headers,omitempty"`
	Error     *Error   `json:"error,omitempty"`
}

// Error is the failure of an SDK, or of a driver.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error gives code and message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Hello is what a driver says of itself.
type Hello struct {
	Protocol   int      `json:"protocol"`
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Operations []string `json:"operations"`
	Features   []string `json:"features"`
}

// Outcome is a value or the error in its place.
type Outcome struct {
	Value  Bytes  `json:"value"`
	Offset int64  `json:"offset"`
	Millis int64  `json:"ms,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// Numbers is what became of the records of a soak.
type Numbers struct {
	Acknowledged int64 `json:"acknowledged"` // written and on the broker
	Refused      int64 `json:"refused"`      // not written: they have no number
	Failed       int64 `json:"failed"`       // written, and not taken by the broker
	Read         int64 `json:"read"`         // with the value that must be there
	Wrong        int64 `json:"wrong"`        // with another one
	Unreadable   int64 `json:"unreadable"`

	Reasons map[string]int64 `json:"reasons"` // how many were refused or unreadable, by code
}

// Answer is one line from a driver.
type Answer struct {
	ID    int             `json:"id"`
	OK    json.RawMessage `json:"ok,omitempty"`
	Error *Error          `json:"error,omitempty"`
}
