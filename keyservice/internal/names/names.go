// Package names holds the rules for names that come from outside: topics, scopes and principals (spec/limits.md).
package names

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Limits of spec/limits.md, in bytes.
const (
	MaxTopic     = 249
	MaxPrincipal = 512
)

// CheckTopic says why name is not a Kafka topic name, or nil. Scopes follow the same rules [CL-POL-006].
func CheckTopic(name string) error {
	if err := checkSize(name, MaxTopic); err != nil {
		return err
	}
	if name == "." || name == ".." {
		return fmt.Errorf("%q is not allowed", name)
	}
	for i := range len(name) {
		if !IsTopicByte(name[i]) {
			return fmt.Errorf("character %d is not one of A-Z a-z 0-9 . _ -", i+1)
		}
	}
	return nil
}

// IsTopicByte tells whether c may stand in a topic name.
func IsTopicByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	default:
		return c == '.' || c == '_' || c == '-'
	}
}

// CheckPrincipal says why name cannot be a principal's, or nil: 1 to 512 bytes of printable UTF-8.
func CheckPrincipal(name string) error {
	if err := checkSize(name, MaxPrincipal); err != nil {
		return err
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("it is not UTF-8")
	}
	for i, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("the character at byte %d is not printable", i+1)
		}
	}
	return nil
}

func checkSize(name string, limit int) error {
	if name == "" {
		return fmt.Errorf("it is empty")
	}
	if len(name) > limit {
		return fmt.Errorf("it has %d bytes, more than %d", len(name), limit)
	}
	return nil
}
