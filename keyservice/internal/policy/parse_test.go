package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

const tail = `
grants:
  - principals: ["p"]
    actions: [encrypt]
    topics: ["*"]
`

const head = `version: 1
topics:
  - topics: ["*"]
    mode: encrypt
`

// [CL-POL-004] [CL-POL-005] [CL-POL-006] [CL-POL-008]
func TestMistakesNameTheirLine(t *testing.T) {
	long := strings.Repeat("x", 250)
	for _, c := range []struct {
		name, text string
		line       int
	}{
		{"empty", "", 0},
		{"only a comment", "# nothing\n", 0},
		{"not a mapping", "- a\n", 1},
		{"syntax", "version: 1\ntopics: [\"a\"\ngrants: x: y\n", 3},
		{"unknown member", head + "graants: []\n", 5},
		{"unknown member of a rule", "version: 1\ntopics:\n  - topics: [a]\n    mode: encrypt\n    mod: clear\n" + tail, 5},
		{"member in other case", "version: 1\nTopics:\n", 2},
		{"member twice", head + "version: 1\n" + tail, 5},
		{"no version", "topics:\n  - topics: [a]\n    mode: clear\n" + tail, 1},
		{"version 2", "version: 2\n", 1},
		{"version as text", "version: \"1\"\n", 1},
		{"no topics", "version: 1\n" + tail, 1},
		{"no grants", head, 1},
		{"null topics", "version: 1\ntopics:\n" + tail, 2},
		{"empty topics", "version: 1\ntopics: []\n" + tail, 2},
		{"empty grants", head + "grants: []\n", 5},
		{"rule without mode", "version: 1\ntopics:\n  - topics: [a]\n" + tail, 3},
		{"rule without topics", "version: 1\ntopics:\n  - mode: clear\n" + tail, 3},
		{"empty list of topics", "version: 1\ntopics:\n  - mode: clear\n    topics: []\n" + tail, 4},
		{"topics as text", "version: 1\ntopics:\n  - mode: clear\n    topics: a\n" + tail, 4},
		{"topic as number", "version: 1\ntopics:\n  - mode: clear\n    topics: [a, 12]\n" + tail, 4},
		{"topic as truth value", "version: 1\ntopics:\n  - mode: clear\n    topics: [true]\n" + tail, 4},
		{"empty topic", "version: 1\ntopics:\n  - mode: clear\n    topics: [\"\"]\n" + tail, 4},
		{"topic with a space", "version: 1\ntopics:\n  - mode: clear\n    topics:\n      - a\n      - \"b c\"\n" + tail, 6},
		{"topic ..", "version: 1\ntopics:\n  - mode: clear\n    topics: [\"..\"]\n" + tail, 4},
		{"topic too long", "version: 1\ntopics:\n  - mode: clear\n    topics: [\"" + long + "\"]\n" + tail, 4},
		{"unknown mode", "version: 1\ntopics:\n  - topics: [a]\n    mode: Encrypt\n" + tail, 4},
		{"invalid scope", "version: 1\ntopics:\n  - topics: [a]\n    mode: encrypt\n    scope: \"a*\"\n" + tail, 5},
		{"scope too long", "version: 1\ntopics:\n  - topics: [a]\n    mode: encrypt\n    scope: \"" + long + "\"\n" + tail, 5},
		{"scope .", "version: 1\ntopics:\n  - topics: [a]\n    mode: encrypt\n    scope: .\n" + tail, 5},
		{"plaintext word", "version: 1\ntopics:\n  - topics: [a]\n    mode: encrypt\n    plaintext: yes\n" + tail, 5},
		{"plaintext with forbid", "version: 1\ntopics:\n  - topics: [a]\n    mode: forbid\n    plaintext: accept\n" + tail, 3},
		{"plaintext with clear", "version: 1\ntopics:\n  - topics: [a]\n    mode: clear\n    plaintext: reject\n" + tail, 3},
		{"lease too short", "version: 1\nlease: {expires_in: 0s}\n", 2},
		{"lease too long", "version: 1\nlease: {expires_in: 604801s}\n", 2},
		{"lease negative", "version: 1\nlease: {expires_in: -5s}\n", 2},
		{"lease in fractions", "version: 1\nlease: {expires_in: 1500ms}\n", 2},
		{"lease without unit", "version: 1\nlease: {expires_in: 300}\n", 2},
		{"lease of nonsense", "version: 1\nlease: {expires_in: soon}\n", 2},
		{"lease without expires_in", "version: 1\nlease: {refresh_in: 5s}\n", 2},
		{"refresh after the end", "version: 1\nlease:\n  expires_in: 5s\n  refresh_in: 6s\n", 3},
		{"unknown action", head + "grants:\n  - principals: [p]\n    actions: [encrypt, peek]\n    topics: [a]\n", 7},
		{"action twice", head + "grants:\n  - principals: [p]\n    actions: [encrypt, encrypt]\n    topics: [a]\n", 7},
		{"no actions", head + "grants:\n  - principals: [p]\n    topics: [a]\n", 6},
		{"no principals", head + "grants:\n  - actions: [encrypt]\n    topics: [a]\n", 6},
		{"empty principals", head + "grants:\n  - principals: []\n", 6},
		{"principal with a newline", head + "grants:\n  - principals: [\"a\\nb\"]\n", 6},
		{"principal too long", head + "grants:\n  - principals: [\"" + strings.Repeat("p", 513) + "\"]\n", 6},
		{"encrypt on scopes", head + "grants:\n  - principals: [p]\n    actions: [encrypt]\n    scopes: [a]\n", 6},
		{"encrypt with scopes too", head + "grants:\n  - principals: [p]\n    actions: [encrypt]\n    topics: [a]\n    scopes: [a]\n", 6},
		{"rotate on topics", head + "grants:\n  - principals: [p]\n    actions: [rotate]\n    topics: [a]\n", 6},
		{"rotate with topics too", head + "grants:\n  - principals: [p]\n    actions: [rotate]\n    scopes: [a]\n    topics: [a]\n", 6},
		{"rotate with a lease", head + "grants:\n  - principals: [p]\n    actions: [rotate]\n    scopes: [a]\n    lease: {expires_in: 5s}\n", 6},
		{"anchor", "version: 1\ntopics:\n  - &a\n    topics: [a]\n    mode: clear\n" + tail, 3},
		{"alias", "version: 1\ntopics:\n  - topics: [a]\n    mode: clear\n  - *b\n" + tail, 5},
		{"tag", "version: !!int \"1\"\n", 1},
		{"second document", head + tail + "---\nversion: 1\n", 10},
		{"nested too deep", "version: 1\ntopics: " + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "\n", 2},
		{"NUL", "version: 1\n\x00", 0},
		{"not UTF-8", "version: 1\ntopics: \"\xff\"\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse("policy.yaml", []byte(c.text))
			mistake, ok := errors.AsType[*strictyaml.Error](err)
			if p != nil || !ok {
				t.Fatalf("taken: %v", err)
			}
			if c.line > 0 && mistake.Line != c.line {
				t.Errorf("line %d, want %d: %v", mistake.Line, c.line, err)
			}
			if !strings.HasPrefix(err.Error(), "policy.yaml:") {
				t.Errorf("the file is not named: %v", err)
			}
		})
	}
}

func rules(count int) string {
	var b strings.Builder
	b.WriteString("version: 1\ntopics:\n")
	for i := range count - 1 { // and one grant
		fmt.Fprintf(&b, "  - {topics: [t%d], mode: encrypt}\n", i)
	}
	return b.String() + tail
}

func TestLimitsOfTheFile(t *testing.T) {
	if _, err := Parse("p", []byte(rules(10_000))); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p", []byte(rules(10_001))); err == nil {
		t.Error("10,001 rules were taken")
	}
	padding := func(size int) []byte {
		text := head + tail + "# "
		return []byte(text + strings.Repeat("x", size-len(text)))
	}
	if _, err := Parse("p", padding(1<<20)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p", padding(1<<20+1)); err == nil {
		t.Error("more than 1 MiB was taken")
	}
	name := strings.Repeat("x", 249)
	if _, err := Parse("p", []byte("version: 1\ntopics: [{topics: ["+name+"], mode: encrypt, scope: "+name+"}]"+tail)); err != nil {
		t.Error(err)
	}
}

// [CL-POL-005]
func TestReloadKeepsTheOldPolicyWhenTheNewOneIsInvalid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(head+tail, 0o600)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	before := f.Current()
	write(head+"oops: 1\n"+tail, 0o600)
	if err := f.Reload(); err == nil || !strings.Contains(err.Error(), "policy.yaml:5: ") || f.Current() != before {
		t.Errorf("an invalid policy: %v", err)
	}
	write(head+tail, 0o666)
	if err := f.Reload(); err == nil || !strings.Contains(err.Error(), "chmod o-w") || f.Current() != before {
		t.Errorf("a policy that everybody may change: %v", err)
	}
	write(head+tail, 0o644)
	if err := f.Reload(); err != nil || f.Current() == before {
		t.Errorf("a valid policy was not taken: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(); err == nil || f.Current() == nil {
		t.Errorf("a missing policy: %v", err)
	}
}

// [CL-POL-014] By content, also when a symbolic link leads elsewhere, as Kubernetes does it; a mistake is told once.
func TestReloadOfAChangedFile(t *testing.T) {
	dir := t.TempDir()
	lay := func(version, text string) {
		t.Helper()
		folder := filepath.Join(dir, version)
		err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte(text), 0o600),
			os.Symlink(version, filepath.Join(dir, "next")), os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")))
		if err != nil {
			t.Fatal(err)
		}
	}
	lay("v1", head+tail)
	f, err := Open(filepath.Join(dir, "data", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	looks := func(wantChanged bool, want string) {
		t.Helper()
		before := f.Current()
		changed, err := f.ReloadChanged()
		if changed != wantChanged || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("changed %v, %v", changed, err)
		}
		if taken := f.Current() != before; taken != (wantChanged && want == "") {
			t.Errorf("taken: %v", taken)
		}
	}
	looks(false, "")
	lay("v2", head+tail+"# more")
	looks(true, "")
	looks(false, "")
	lay("v3", head+tail+"    when: principal\n")
	looks(true, "policy.yaml:10: grant 1: the condition gives string")
	looks(false, "")
	lay("v4", head+tail)
	looks(true, "")
	if err := os.Remove(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	looks(true, "no such file")
	looks(false, "")
	lay("v5", head+tail+"# last")
	looks(true, "")
}
