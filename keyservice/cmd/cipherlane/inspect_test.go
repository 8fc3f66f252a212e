// inspect, on the vectors of spec/vectors and on what is not an envelope.

package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

func envelopeVector(t *testing.T) (text string, value []byte) {
	t.Helper()
	var out struct{ Envelope string }
	vectors.Decode(t, vectors.Read(t, "encrypt")[1].Output, &out)
	value, err := hex.DecodeString(out.Envelope)
	if err != nil {
		t.Fatal(err)
	}
	return out.Envelope, value
}

func TestInspect(t *testing.T) {
	text, value := envelopeVector(t)
	raw, written := filepath.Join(t.TempDir(), "raw"), filepath.Join(t.TempDir(), "text")
	for path, data := range map[string][]byte{raw: value, written: []byte(text[:10] + "\n" + strings.ToUpper(text[10:]) + "\n")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := tool(t, "inspect", text).ok(t)
	for _, part := range []string{"OFFSET", "c19e", "version 1", text[8:40], text[40:56], "record 0 of the session", "tag", "overhead"} {
		if !strings.Contains(want, part) {
			t.Errorf("%q is not in\n%s", part, want)
		}
	}
	for name, o := range map[string]outcome{
		"base64":     tool(t, "inspect", base64.StdEncoding.EncodeToString(value)),
		"base64 url": tool(t, "inspect", "--as", "base64", base64.RawURLEncoding.EncodeToString(value)),
		"0x":         tool(t, "inspect", "0x"+text),
		"file":       tool(t, "inspect", "--file", raw),
		"text file":  tool(t, "inspect", "--file", written),
		"stdin":      toolWith(t, string(value), nil, "inspect"),
		"stdin, -":   toolWith(t, text+"\n", nil, "inspect", "-"),
	} {
		if got := o.ok(t); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// Fields cover every byte once, in order, and the error is the specification's: for all vectors that reach the parser.
func TestExplainVectors(t *testing.T) {
	parse := map[string]bool{"envelope-too-short": true, "unsupported-version": true, "unsupported-flags": true}
	for _, v := range vectors.Read(t, "decrypt") {
		var in struct{ Value *string }
		vectors.Decode(t, v.Input, &in)
		if in.Value == nil {
			continue
		}
		value, err := hex.DecodeString(*in.Value)
		if err != nil {
			t.Fatal(err)
		}
		got := explain(value)
		want := ""
		if v.Error != nil && parse[v.Error.Code] {
			want = v.Error.Code
		}
		if code := codeIn(got); code != want {
			t.Errorf("%s: %q, want %q", v.ID, code, want)
		}
		at := 0
		for _, f := range got.Fields {
			if f.Offset != at || f.Size == 0 || f.Meaning == "" {
				t.Errorf("%s: %+v at %d", v.ID, f, at)
			}
			at += f.Size
		}
		if got.Envelope && got.Error == nil && at != len(value) {
			t.Errorf("%s: %d of %d bytes are explained", v.ID, at, len(value))
		}
	}
}

func codeIn(e explained) string {
	if e.Error == nil {
		return ""
	}
	return e.Error.Code
}

func TestInspectRefuses(t *testing.T) {
	text, _ := envelopeVector(t)
	for _, c := range []struct{ says, value string }{
		{"unsupported-version: version 2", "c19e02" + text[6:]},
		{"unsupported-flags", "c19e01f8" + text[8:]},
		{"envelope-too-short", text[:60]},
		{"envelope-too-short", "c19e"},
		{"not an envelope", "7b7d"},
		{"neither hexadecimal nor base64", "%%%"},
	} {
		tool(t, "inspect", c.value).fails(t, 1, c.says)
	}
	tool(t, "inspect", "--as", "hex", "wZ4=").fails(t, 1, "neither")
	tool(t, "inspect", "--file", filepath.Join(t.TempDir(), "none")).fails(t, 2)
	o := tool(t, "inspect", "--json", "c19e01f8"+text[8:])
	var found explained
	if err := json.Unmarshal([]byte(o.out), &found); err != nil || o.code != 1 || codeIn(found) != "unsupported-flags" || len(found.Fields) < 5 {
		t.Errorf("%v %s", err, o.out)
	}
}
