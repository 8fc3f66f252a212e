// Points in time, and where a node stands.

package strictyaml

import (
	"time"

	"go.yaml.in/yaml/v4"
)

// Line gives the line of this place in the file, from 1.
func (n Node) Line() int { return n.node.Line }

// Instant reads a point in time by RFC 3339, with its offset from UTC; quotes are not needed.
func (n Node) Instant() (time.Time, error) {
	if tag := n.node.ShortTag(); n.node.Kind != yaml.ScalarNode || tag != "!!str" && tag != "!!timestamp" {
		return time.Time{}, n.Errorf("expected a time such as 2026-11-01T08:00:00+01:00")
	}
	value, err := time.Parse(time.RFC3339, n.node.Value)
	if err != nil {
		return time.Time{}, n.Errorf("%q is not a time with its offset, such as 2026-11-01T08:00:00+01:00 or 2026-11-01T07:00:00Z", n.node.Value)
	}
	return value, nil
}

// InstantInto reads an optional point in time.
func InstantInto(target *time.Time) Field {
	return Field{Read: func(n Node) (err error) {
		*target, err = n.Instant()
		return err
	}}
}
