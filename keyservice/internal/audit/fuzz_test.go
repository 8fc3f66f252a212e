package audit

import (
	"bytes"
	"testing"
)

// A line of the log, as `cipherlane audit verify` and the service at its start read it: anything may stand in a file.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{"seq":1,"prev":"` + Hash{}.String() + `","time":"2026-01-02T03:04:05Z","action":"encrypt","outcome":"allowed"}`,
		`{"seq":18446744073709551615,"prev":"` + Hash{}.String() + `"}`, `{"seq":0}`, `{`, ``, `null`, `[]`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := parseLine(text)
		if err != nil {
			return
		}
		if line.Seq == 0 || len(line.Prev) != 2*len(Hash{}) {
			t.Fatalf("%q is a line without a place", text)
		}
		v := &verifier{report: &Report{}}
		if err := v.take(bytes.Clone(text), true); err != nil {
			t.Fatal(err)
		}
		v.finish()
		if v.report.Whole() && line.Seq != 1 {
			t.Fatalf("%q begins a chain", text)
		}
	})
}
