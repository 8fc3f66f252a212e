// Short forms for the members that files have most: they store into a variable.

package strictyaml

import (
	"slices"
	"strings"
	"time"
)

// TextInto reads an optional text.
func TextInto(target *string) Field {
	return Field{Read: func(n Node) (err error) {
		*target, err = n.Text()
		return err
	}}
}

// DurationInto reads an optional duration from low to high, in whole milliseconds.
func DurationInto(target *time.Duration, low, high time.Duration) Field {
	return Field{Read: func(n Node) (err error) {
		*target, err = n.Duration(low, high, time.Millisecond)
		return err
	}}
}

// IntegerInto reads an optional whole number from low to high.
func IntegerInto(target *int, low, high int) Field {
	return Field{Read: func(n Node) (err error) {
		*target, err = n.Integer(low, high)
		return err
	}}
}

// TruthInto reads an optional true or false.
func TruthInto(target *bool) Field {
	return Field{Read: func(n Node) (err error) {
		*target, err = n.Truth()
		return err
	}}
}

// Must makes a field required.
func Must(f Field) Field {
	f.Required = true
	return f
}

func sortedNames(fields map[string]Field) string {
	all := make([]string, 0, len(fields))
	for name := range fields {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
