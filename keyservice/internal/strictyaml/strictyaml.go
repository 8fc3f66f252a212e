// Package strictyaml reads YAML files that decide over keys: every member must be known, of the right type, and given
// once; every error names the file and the line. No anchors, aliases, tags or second documents.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// MaxSize is the largest file that is read, in bytes (spec/limits.md).
const MaxSize = 1 << 20

// Error is a mistake in a file. Line is 0 when it is of the file as a whole.
type Error struct {
	File string
	Line int
	Text string
}

// Error shows "file:line: text".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// Node is a place in a file.
type Node struct {
	file string
	node *yaml.Node
}

// Field says how one member of a mapping is read.
type Field struct {
	Required bool
	Read     func(Node) error
}

// Parse reads one document; file is the name that errors show.
func Parse(file string, data []byte) (Node, error) {
	if len(data) > MaxSize {
		return Node{}, &Error{file, 0, fmt.Sprintf("the file has %d bytes, more than %d", len(data), MaxSize)}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return Node{}, &Error{file, 0, "the file is empty"}
	} else if err != nil {
		return Node{}, syntaxError(file, err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return Node{}, &Error{file, second.Line, "the file holds more than one document"}
	}
	root := Node{file, &document}
	if document.Kind == yaml.DocumentNode && len(document.Content) == 1 {
		root.node = document.Content[0]
	}
	return root, root.checkPlain(0)
}

// syntaxError keeps the parser's text, which has the line, on one line of ours.
func syntaxError(file string, err error) error {
	if parse, ok := errors.AsType[*yaml.LoadError](err); ok {
		return &Error{file, parse.Mark.Line, parse.Message}
	}
	return &Error{file, 0, strings.ReplaceAll(err.Error(), "\n", " ")}
}

const maxDepth = 16

// checkPlain refuses what makes a YAML file mean something else than it seems to.
func (n Node) checkPlain(depth int) error {
	switch {
	case depth > maxDepth:
		return n.Errorf("nested deeper than %d levels", maxDepth)
	case n.node.Kind == yaml.AliasNode, n.node.Anchor != "":
		return n.Errorf("anchors and aliases are not allowed")
	case n.node.Style&yaml.TaggedStyle != 0:
		return n.Errorf("tags are not allowed")
	}
	for _, child := range n.node.Content {
		if err := (Node{n.file, child}).checkPlain(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// Errorf makes an error that names this place.
func (n Node) Errorf(format string, args ...any) error {
	return &Error{n.file, n.node.Line, fmt.Sprintf(format, args...)}
}

// Members reads a mapping: each member with its field, unknown, repeated and missing ones refused.
func (n Node) Members(fields map[string]Field) error {
	if n.node.Kind != yaml.MappingNode {
		return n.Errorf("expected a mapping (name: value)")
	}
	seen := make(map[string]bool, len(fields))
	for i := 0; i < len(n.node.Content); i += 2 {
		name, value := Node{n.file, n.node.Content[i]}, Node{n.file, n.node.Content[i+1]}
		if err := name.readMember(value, fields, seen); err != nil {
			return err
		}
	}
	for name, field := range fields {
		if field.Required && !seen[name] {
			return n.Errorf("%q is missing", name)
		}
	}
	return nil
}

// readMember reads one member, whose name is n.
func (n Node) readMember(value Node, fields map[string]Field, seen map[string]bool) error {
	name := n.node.Value
	field, known := fields[name]
	switch {
	case n.node.Kind != yaml.ScalarNode || !known:
		return n.Errorf("unknown member %q; known here: %s", name, sortedNames(fields))
	case seen[name]:
		return n.Errorf("%q is given twice", name)
	}
	seen[name] = true
	return field.Read(value)
}

// List reads a sequence of at least one item, and tells how many there are.
func (n Node) List(read func(Node) error) (int, error) {
	if n.node.Kind != yaml.SequenceNode {
		return 0, n.Errorf("expected a list")
	}
	if len(n.node.Content) == 0 {
		return 0, n.Errorf("the list is empty")
	}
	for _, item := range n.node.Content {
		if err := read(Node{n.file, item}); err != nil {
			return 0, err
		}
	}
	return len(n.node.Content), nil
}

// Text reads a string that is not empty.
func (n Node) Text() (string, error) {
	if n.node.Kind != yaml.ScalarNode || n.node.ShortTag() != "!!str" {
		return "", n.Errorf("expected text (put it in quotes if it looks like a number, a date or a truth value)")
	}
	if n.node.Value == "" {
		return "", n.Errorf("expected text, found an empty one")
	}
	return n.node.Value, nil
}

// Integer reads a whole number from low to high.
func (n Node) Integer(low, high int) (int, error) {
	var value int
	if n.node.Kind != yaml.ScalarNode || n.node.ShortTag() != "!!int" || n.node.Decode(&value) != nil {
		return 0, n.Errorf("expected a whole number")
	}
	if value < low || value > high {
		return 0, n.Errorf("%d is not within %d to %d", value, low, high)
	}
	return value, nil
}

// Truth reads true or false.
func (n Node) Truth() (bool, error) {
	var value bool
	if n.node.Kind != yaml.ScalarNode || n.node.ShortTag() != "!!bool" || n.node.Decode(&value) != nil {
		return false, n.Errorf("expected true or false")
	}
	return value, nil
}

// Duration reads a duration such as 90s, 5m or 1h from low to high, in whole units of step.
func (n Node) Duration(low, high, step time.Duration) (time.Duration, error) {
	text, err := n.Text()
	if err != nil {
		return 0, n.Errorf("expected a duration such as 90s, 5m or 1h")
	}
	value, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, n.Errorf("%q is not a duration such as 90s, 5m or 1h", text)
	case value < low || value > high:
		return 0, n.Errorf("%s is not within %s to %s", text, low, high)
	case value%step != 0:
		return 0, n.Errorf("%s is not in whole units of %s", text, step)
	}
	return value, nil
}

// OneOf reads one of a few words.
func (n Node) OneOf(target *string, words ...string) error {
	text, err := n.Text()
	if err != nil {
		return err
	}
	if !slices.Contains(words, text) {
		return n.Errorf("%q is not one of: %s", text, strings.Join(words, ", "))
	}
	*target = text
	return nil
}
