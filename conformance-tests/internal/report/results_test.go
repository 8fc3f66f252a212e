package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func withKnown(t *testing.T, lines string) (*Results, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known.txt")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	results := &Results{}
	err := results.ReadKnown(file)
	return results, err
}

func TestKnownFailures(t *testing.T) {
	results, err := withKnown(t, "# a comment\n\nvectors/c/topic-* C strings end at zero\nfuzz/java/batch-1 fixed long ago\n")
	if err != nil {
		t.Fatal(err)
	}
	results.Add(Result{Suite: "vectors", Driver: "c", Case: "topic-nul", Status: Failed, Message: "wrong"})
	results.Add(Result{Suite: "vectors", Driver: "java", Case: "topic-nul", Status: Failed, Message: "wrong"})
	results.Add(Result{Suite: "vectors", Driver: "c", Case: "topic-dot", Status: Passed})
	results.Finish()
	if results.Count(Known) != 1 || results.Count(Failed) != 1 || results.Count(Passed) != 1 || results.Count(Stale) != 1 {
		t.Errorf("%+v", results.All)
	}
	var table strings.Builder
	if err := results.WriteTable(&table); err != nil || !strings.Contains(table.String(), "STALE") || !strings.Contains(table.String(), "vectors/java/topic-nul: wrong") {
		t.Errorf("%v: %s", err, table.String())
	}
}

func TestBadKnownFailures(t *testing.T) {
	for _, lines := range []string{"vectors/c/x\n", "vectors/c/[ a reason\n", "  reasonless  \n"} {
		if _, err := withKnown(t, lines); err == nil {
			t.Errorf("%q was taken", lines)
		}
	}
	if err := (&Results{}).ReadKnown("/nonexistent"); err == nil {
		t.Error("a missing file was taken")
	}
}

func TestCompliance(t *testing.T) {
	results := &Results{Facts: Facts{Drivers: map[string]string{"c": "c", "java": "java"}, Features: map[string][]string{"java": {"record-key"}}}}
	results.Add(Result{Suite: "vectors", Driver: "c", Case: "a", Status: Failed})
	results.Add(Result{Suite: "vectors", Driver: "c", Case: "b", Status: Passed})
	results.Add(Result{Suite: "vectors", Driver: "java", Case: "a", Status: Passed})
	results.Add(Result{Suite: "matrix", Driver: "c", Case: "reads-java", Status: Passed})
	results.Add(Result{Suite: "fuzz", Driver: "c", Case: "all", Status: Skipped})
	results.Add(Result{Suite: "leak", Driver: "java", Case: "writing/reset", Status: Passed})
	results.Add(Result{Suite: "actions", Driver: "c", Case: "skip", Status: Passed})
	folder := t.TempDir()
	document := filepath.Join(folder, "README.md")
	if err := os.WriteFile(document, []byte("before\n"+complianceBegin+"old\n"+complianceEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := results.WriteFiles(folder); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time into what the first wrote
		if err := WriteCompliance(filepath.Join(folder, "results.json"), document); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(document)
	for _, part := range []string{"before\n<!--", "| 1 of 2 | 1 ✓ |", "| binds record keys | – | 1 ✓ |", "| comes to the same verdict on mutated input | – | – |", "trouble | – | 1 ✓ |", "action says | 1 ✓ | – |", "-->\nafter\n"} {
		if err != nil || !strings.Contains(string(text), part) || strings.Contains(string(text), "old") {
			t.Errorf("%v: no %q in %s", err, part, text)
		}
	}
	for _, pair := range [][2]string{{"/nonexistent", document}, {document, document}, {filepath.Join(folder, "results.json"), filepath.Join(folder, "index.html")}} {
		if err := WriteCompliance(pair[0], pair[1]); err == nil {
			t.Errorf("%v was taken", pair)
		}
	}
}

func TestPageEscapes(t *testing.T) {
	results := &Results{Facts: Facts{Environment: map[string]string{"broker": "<b>"}, Drivers: map[string]string{}}}
	results.Add(Result{Suite: "vectors", Driver: "c", Case: "<script>", Status: Failed, Message: "<script>alert(1)</script>"})
	folder := t.TempDir()
	if err := results.WriteFiles(folder); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "index.html"))
	if err != nil || strings.Contains(string(page), "<script>") || !strings.Contains(string(page), "1 failed") {
		t.Errorf("%v: %s", err, page)
	}
}
