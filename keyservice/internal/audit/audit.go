// Package audit records every release of a key and every refusal before it is answered [CL-API-013].
package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
)

// ErrUnavailable says that a record is not known to be on disk. What it was about must be refused.
var ErrUnavailable = errors.New("the audit log cannot be written")

// Log takes records. An implementation returns nil only when all of them are on disk, and returns within a second
// or when ctx ends. It is safe for concurrent use.
type Log interface {
	// Write records what is about to be answered.
	Write(ctx context.Context, records ...Record) error
	// Check tells whether the log can be written now.
	Check(ctx context.Context) error
	// Close writes what is under way and closes the log.
	Close() error
}

// Outcome is what became of a call.
type Outcome string

// The outcomes. Begun stands before a change that is made; the change's own record follows.
const (
	Allowed Outcome = "allowed"
	Refused Outcome = "refused"
	Begun   Outcome = "begun"
)

// Record is one line. It has no place for a key.
type Record struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id,omitzero"`
	Principal string    `json:"principal,omitzero"`
	Remote    string    `json:"remote,omitzero"`
	Action    string    `json:"action"`
	Topic     string    `json:"topic,omitzero"`
	Scope     string    `json:"scope,omitzero"`
	Mode      string    `json:"mode,omitzero"`
	Kids      []string  `json:"kids,omitempty"`
	Subject   string    `json:"subject,omitzero"` // the principal that a revocation is about, or a bootstrap token for
	Outcome   Outcome   `json:"outcome"`
	Code      string    `json:"code,omitzero"`
	Serial    string    `json:"serial,omitzero"` // of a certificate

	Count int `json:"count,omitzero"` // events that this line stands for, if not one

	// Of what is done with a Kafka cluster, in lines of the key service and of sidecars.
	Right       string `json:"right,omitzero"`       // the action of the policy that was asked for
	Group       string `json:"group,omitzero"`       // the consumer group
	Transaction string `json:"transaction,omitzero"` // the transactional id
	ExpiresIn   int64  `json:"expires_in,omitzero"`  // seconds, of a lease

	// Of a sidecar's lines.
	Host       string   `json:"host,omitzero"`       // where the sidecar runs
	Connection string   `json:"connection,omitzero"` // the sidecar's name for it
	Client     string   `json:"client,omitzero"`     // client.id, as the client says
	Process    *Process `json:"process,omitzero"`    // at the other end of a loopback connection
	Records    int64    `json:"records,omitzero"`
	Bytes      int64    `json:"bytes,omitzero"`

	// Of the lines audit-start and audit-rotate.
	Chain        string `json:"chain,omitzero"`         // name of the replica
	PreviousFile string `json:"previous_file,omitzero"` // what the file before is called now
	Cut          int    `json:"cut,omitzero"`           // bytes of an unfinished line that a crash left, and that were cut off
}

// Process is a program on the sidecar's host.
type Process struct {
	PID        int32             `json:"pid"`
	UID        uint32            `json:"uid"`
	Executable string            `json:"executable"`
	SHA256     string            `json:"sha256"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Line is a record as it stands in the log.
type Line struct {
	Record
	Seq  uint64 `json:"seq"`
	Prev string `json:"prev"`
}

// Actions of the log's own lines.
const (
	ActionStart  = "audit-start"
	ActionRotate = "audit-rotate"
	ActionCheck  = "audit-check"
	// ActionThrottled stands for refusals for want of room that were gathered.
	ActionThrottled = "throttled"

	// Of a sidecar, and ActionAccess also of the key service's answers to one.
	ActionAccess  = "access"         // somebody was given a right, or refused it
	ActionUse     = "access-use"     // a right was used on a connection for the first time
	ActionEnd     = "access-end"     // a right was not used any more, or the connection ended: with what went through
	ActionConnect = "connection"     // somebody connected
	ActionLeave   = "connection-end" // and left
)

// MaxLine is the longest line in bytes, with its end (spec/limits.md).
const MaxLine = 16 << 10

// kidsPerLine keeps a line with many kids below MaxLine: such a record becomes several lines, so that no kid is left out.
const kidsPerLine = 300

// objects gives the record as JSON objects, one for each line.
func (r Record) objects() ([][]byte, error) {
	r.Time = r.Time.UTC()
	r.Topic = shorten(r.Topic, names.MaxTopic)
	r.Scope = shorten(r.Scope, names.MaxTopic)
	r.Principal = shorten(r.Principal, names.MaxPrincipal)
	r.Subject = shorten(r.Subject, names.MaxPrincipal)
	r.Group = shorten(r.Group, names.MaxPrincipal)
	r.Transaction = shorten(r.Transaction, names.MaxPrincipal)
	r.Client = shorten(r.Client, names.MaxPrincipal)
	var out [][]byte
	for rest := r.Kids; ; {
		r.Kids = rest[:min(len(rest), kidsPerLine)]
		rest = rest[len(r.Kids):]
		object, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("write an audit record: %w", err)
		}
		out = append(out, object)
		if len(rest) == 0 {
			return out, nil
		}
	}
}

// shorten cuts what a caller made too long, and says so; what is not UTF-8 is replaced.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:limit], "\uFFFD"), len(s))
}
