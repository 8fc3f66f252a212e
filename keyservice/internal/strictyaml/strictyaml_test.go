package strictyaml

import (
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, text string, members map[string]Field) error {
	t.Helper()
	root, err := Parse("f.yaml", []byte(text))
	if err != nil {
		return err
	}
	return root.Members(members)
}

func TestValues(t *testing.T) {
	var text, word string
	var number int
	var duration time.Duration
	members := map[string]Field{
		"text":     TextInto(&text),
		"number":   IntegerInto(&number, 1, 10),
		"duration": DurationInto(&duration, time.Second, time.Minute),
		"word":     {Read: func(n Node) error { return n.OneOf(&word, "a", "b") }},
	}
	if err := read(t, "text: \"12\"\nnumber: 10\nduration: 1m\nword: b\n", members); err != nil {
		t.Fatal(err)
	}
	if text != "12" || number != 10 || duration != time.Minute || word != "b" {
		t.Fatal(text, number, duration, word)
	}
	for bad, want := range map[string]string{
		"number: 11":                   "f.yaml:1: 11 is not within 1 to 10",
		"number: 0":                    "f.yaml:1: 0 is not within 1 to 10",
		"number: 99999999999999999999": "f.yaml:1: expected a whole number",
		"number: 1.0":                  "f.yaml:1: expected a whole number",
		"number: \"1\"":                "f.yaml:1: expected a whole number",
		"number: [1]":                  "f.yaml:1: expected a whole number",
		"duration: 61s":                "f.yaml:1: 61s is not within",
		"duration: 1s1us":              "f.yaml:1: 1s1us is not in whole units",
		"duration: 5":                  "f.yaml:1: expected a duration",
		"text:":                        "f.yaml:1: expected text",
		"text: ''":                     "f.yaml:1: expected text, found an empty one",
		"text: {a: b}":                 "f.yaml:1: expected text",
		"\n\nword: c":                  "f.yaml:3: \"c\" is not one of: a, b",
		"text: a\ntext: a":             "f.yaml:2: \"text\" is given twice",
		"<<: {text: a}":                "f.yaml:1: unknown member \"<<\"; known here: duration, number, text, word",
		"? [a]\n: b":                   "f.yaml:1: unknown member",
		"text: !!str a":                "f.yaml:1: tags are not allowed",
		"text: &x a":                   "f.yaml:1: anchors and aliases",
		"text: a\n---\ntext: b":        "f.yaml:2: the file holds more than one document",
		"":                             "f.yaml: the file is empty",
	} {
		err := read(t, bad, members)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %s", bad, err, want)
		}
	}
}

func TestMissingMember(t *testing.T) {
	var a, b string
	err := read(t, "# comment\na: x\n", map[string]Field{"a": TextInto(&a), "b": Must(TextInto(&b))})
	if err == nil || err.Error() != `f.yaml:2: "b" is missing` {
		t.Fatal(err)
	}
}
