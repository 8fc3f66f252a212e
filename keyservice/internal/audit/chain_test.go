// The chain, rotation, and what a check finds.

package audit

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func verify(t *testing.T, e Expect, paths ...string) *Report {
	t.Helper()
	r, err := Verify(paths, e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// filled makes a log of a start line and n records, over the given number of files.
func filled(t *testing.T, n, files int) (paths []string, head Head) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for i := range n {
		if err := l.Write(t.Context(), record(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
		if (i+1)%max(1, n/files) == 0 && i+1 < n {
			if err := l.Rotate(); err != nil {
				t.Fatal(err)
			}
		}
	}
	head = l.Head()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := Files(path)
	if err != nil || len(paths) != files {
		t.Fatal(paths, err)
	}
	return paths, head
}

// CL-AUD-001, CL-AUD-002, computed here anew: SHA-256 over the line before without its end; zeros before the first.
func TestChain(t *testing.T) {
	paths, head := filled(t, 5, 1)
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	want, seq := strings.Repeat("0", 64), 0
	for text := range bytes.Lines(data) {
		seq++
		var line Line
		if err := json.Unmarshal(text, &line); err != nil || (line.Action == ActionStart) != (seq == 1) || line.Prev != want || line.Seq != uint64(seq) {
			t.Fatalf("%s: %v, want %d after %s", text, err, seq, want)
		}
		sum := sha256.Sum256(bytes.TrimSuffix(text, []byte("\n")))
		want = hex.EncodeToString(sum[:])
	}
	if head.String() != "6:"+want {
		t.Errorf("head %s", head)
	}
	if r := verify(t, Expect{Head: &head}, paths...); !r.Whole() || !r.Anchored || r.Lines != 6 || r.Chain != "test" || r.Starts != 1 || r.Head != head.String() {
		t.Errorf("%+v", r)
	}
}

// CL-AUD-006 Whatever is done to a log is found.
func TestTampering(t *testing.T) {
	paths, head := filled(t, 9, 3)
	early := Head{}
	for name, c := range map[string]struct {
		file   int
		change func(lines [][]byte) [][]byte
		expect Expect
		says   string
	}{
		"changed":            {1, func(l [][]byte) [][]byte { l[1] = bytes.Replace(l[1], []byte(`"p"`), []byte(`"q"`), 1); return l }, Expect{}, "was changed"},
		"removed":            {1, func(l [][]byte) [][]byte { return slices.Delete(l, 1, 2) }, Expect{}, "are missing"},
		"removed first line": {1, func(l [][]byte) [][]byte { return l[1:] }, Expect{}, "are missing"},
		"removed last line":  {1, func(l [][]byte) [][]byte { return l[:len(l)-1] }, Expect{}, "are missing"},
		"removed all":        {1, func([][]byte) [][]byte { return nil }, Expect{}, "are missing"},
		"reordered":          {1, func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }, Expect{}, "another order"},
		"repeated":           {1, func(l [][]byte) [][]byte { return slices.Insert(l, 1, l[1]) }, Expect{}, "another order, or twice"},
		"inserted":           {1, func(l [][]byte) [][]byte { return slices.Insert(l, 1, []byte("{}\n")) }, Expect{}, "not a line of an audit log"},
		"unfinished":         {2, func(l [][]byte) [][]byte { l[len(l)-1] = l[len(l)-1][:40]; return l }, Expect{}, "has no end"},
		"renumbered": {1, func(l [][]byte) [][]byte {
			l = slices.Delete(l, 1, 2)
			l[1] = bytes.Replace(l[1], []byte(`"seq":7`), []byte(`"seq":6`), 1)
			return l
		}, Expect{}, "was changed"},
		"beginning removed":     {0, func([][]byte) [][]byte { return nil }, Expect{}, "begins with line"},
		"cut at the end":        {2, func(l [][]byte) [][]byte { return l[:len(l)-2] }, Expect{Head: &head}, "cut off at the end"},
		"not that of an anchor": {2, func(l [][]byte) [][]byte { return l }, Expect{Head: &early}, "written anew"},
	} {
		t.Run(name, func(t *testing.T) {
			early = Head{Seq: 3}
			dir := t.TempDir()
			var copies []string
			for i, path := range paths {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if i == c.file {
					data = bytes.Join(c.change(slices.Collect(bytes.Lines(data))), nil)
				}
				copies = append(copies, filepath.Join(dir, filepath.Base(path)))
				if err := os.WriteFile(copies[i], data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := verify(t, c.expect, copies...)
			if r.Whole() || !strings.Contains(fmt.Sprint(r.Problems), c.says) {
				t.Errorf("want %q: %+v", c.says, r)
			}
		})
	}
	if r := verify(t, Expect{}, paths[0], paths[2], paths[1]); r.Whole() {
		t.Error("files in another order")
	}
	if r := verify(t, Expect{Middle: true}, paths[1], paths[2]); !r.Whole() {
		t.Errorf("%+v", r)
	}
}

// CL-AUD-006 Every single flipped bit is found, but those at the very end, which only an anchor shows.
func TestFlippedBytes(t *testing.T) {
	paths, head := filled(t, 3, 1)
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		data := bytes.Clone(whole)
		data[i] ^= 1
		if err := os.WriteFile(paths[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, Expect{Head: &head}, paths...); r.Whole() {
			t.Fatalf("byte %d changed, not found", i)
		}
	}
}

// CL-AUD-003 No line is lost and the chain goes on while many write and the file is rotated by its size.
func TestRotationUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Options{Name: "test", File: path, MaxSize: 4000}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 20, 20
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range each {
				if err := l.Write(t.Context(), record(fmt.Sprintf("%d/%d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		if err := l.Rotate(); err != nil {
			t.Error(err)
		}
	}
	wait.Wait()
	head := l.Head()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := Files(path)
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	seen := map[string]bool{}
	for _, one := range paths {
		for _, r := range lines(t, one) {
			seen[r.RequestID] = true
		}
	}
	if r := verify(t, Expect{Head: &head}, paths...); !r.Whole() || len(seen) != writers*each {
		t.Fatalf("%d records of %d; %+v", len(seen), writers*each, r)
	}
}

func TestRotationByAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 { // the age is that of the file, not of the process
		l, err := Open(Options{Name: "test", File: path, MaxAge: 120 * time.Millisecond}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Write(t.Context(), record("first")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * time.Millisecond)
		if err := errors.Join(l.Write(t.Context(), record("x")), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := Files(path)
	if err != nil || len(paths) != 3 {
		t.Fatal(paths, err)
	}
	if r := verify(t, Expect{}, paths...); !r.Whole() {
		t.Errorf("%+v", r)
	}
}

// CL-AUD-003 A crash at any step of a rotation.
func TestRotationCutShort(t *testing.T) {
	for name, crash := range map[string]func(path string) error{
		"new file begun":    func(path string) error { return os.WriteFile(path+newSuffix, []byte("{"), 0o600) },
		"second name given": func(path string) error { return os.Link(path, rotatedName(path, 1)) },
		"only rotated":      func(path string) error { return os.Rename(path, rotatedName(path, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			paths, _ := filled(t, 3, 1)
			if err := crash(paths[0]); err != nil {
				t.Fatal(err)
			}
			l := open(t, paths[0])
			if err := errors.Join(l.Write(t.Context(), record("next")), l.Rotate(), l.Write(t.Context(), record("last")), l.Close()); err != nil {
				t.Fatal(err)
			}
			all, err := Files(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			if r := verify(t, Expect{}, all...); !r.Whole() || r.Lines != 8 {
				t.Errorf("%v %+v", all, r)
			}
		})
	}
}

// CL-AUD-003 A file that someone else moved away is followed by a new one on demand, and the chain goes on.
func TestRotateAfterMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	if err := errors.Join(l.Write(t.Context(), record("before")), os.Rename(path, path+".old")); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(t.Context(), record("lost?")); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("someone else's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Rotate(); err == nil {
		t.Fatal("written over")
	}
	if err := errors.Join(os.Remove(path), l.Rotate(), l.Write(t.Context(), record("after"))); err != nil {
		t.Fatal(err)
	}
	head := l.Head()
	if r := verify(t, Expect{Head: &head}, path+".old", path); !r.Whole() || r.Lines != 4 {
		t.Errorf("%+v", r)
	}
	if err := errors.Join(l.Rotate(), l.Rotate(), l.Rotate()); err != nil {
		t.Fatal(err)
	}
	if all, _ := Files(path); len(all) != 2 {
		t.Errorf("files without records were rotated: %v", all)
	}
}

func TestRotationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Options{Name: "test", File: path, MaxSize: 1}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+newSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path+newSuffix, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the old file takes them
		if err := l.Write(t.Context(), record("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Rotate(); err == nil {
		t.Error("no word of it")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, Expect{}, path); !r.Whole() || r.Lines != 4 {
		t.Errorf("%+v", r)
	}
}

// A chain keeps its name where none is configured, whatever the host is called; a name that is configured counts, and is noticed.
func TestNameOfTheChain(t *testing.T) {
	paths, _ := filled(t, 3, 1)
	reopen := func(name string) *Report {
		l, err := Open(Options{Name: name, File: paths[0]}, quiet())
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return verify(t, Expect{}, paths...)
	}
	if r := reopen(""); !r.Whole() || r.Chain != "test" {
		t.Errorf("%+v", r)
	}
	if r := reopen("other"); r.Whole() || r.Chain != "other" {
		t.Errorf("%+v", r)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Options{File: path}, quiet())
	if err != nil || l.name != host {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestParseHead(t *testing.T) {
	head := Head{Seq: 7, Hash: sha256.Sum256(nil)}
	if got, err := ParseHead(head.String()); err != nil || got != head {
		t.Error(got, err)
	}
	hash := head.Hash.String()
	for _, bad := range []string{"", "7", ":" + hash, "-1:" + hash, "7:" + hash[1:], "7:" + hash + "00", "7:" + strings.ToUpper(hash), "7:" + strings.Repeat("x", 64)} {
		if _, err := ParseHead(bad); err == nil {
			t.Errorf("%q", bad)
		}
	}
}

func TestVerifyReadsGzipAndRefusesWhatIsNoFile(t *testing.T) {
	paths, head := filled(t, 3, 1)
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(data)
	if err := errors.Join(err, z.Close(), os.WriteFile(paths[0]+".gz", packed.Bytes(), 0o600), os.WriteFile(paths[0]+".bad.gz", data, 0o600)); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, Expect{Head: &head}, paths[0]+".gz"); !r.Whole() {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{paths[0] + ".none", paths[0] + ".bad.gz", filepath.Dir(paths[0])} {
		if _, err := Verify([]string{bad}, Expect{}); err == nil {
			t.Error(bad)
		}
	}
}

func TestSearch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i, r := range []Record{
		{Principal: "alice", Action: "decrypt", Topic: "claims", Kids: []string{"aa"}, Outcome: Allowed},
		{Principal: "bob", Action: "decrypt", Topic: "claims", Outcome: Refused, Code: "not-authorized"},
		{Principal: "bob", Action: "decrypt", Topic: "other", Kids: []string{"bb"}, Outcome: Allowed},
		{Principal: "carol", Action: "encrypt", Topic: "claims", Kids: []string{"aa"}, Outcome: Allowed},
		{Principal: "carol", Action: "rotate", Scope: "claims", Kids: []string{"cc"}, Outcome: Allowed},
	} {
		r.RequestID, r.Time = strconv.Itoa(i), at.Add(time.Duration(i)*time.Hour)
		if err := l.Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for want, q := range map[string]Query{
		"0 3":       {Topic: "claims", WithKey: true},
		"0":         {Topic: "claims", WithKey: true, To: at.Add(3 * time.Hour)},
		"3":         {Topic: "claims", WithKey: true, From: at.Add(3 * time.Hour)},
		"1":         {Outcome: Refused},
		"0 3 ":      {Kid: "aa"},
		"3 4":       {Principal: "c*"},
		"4":         {Action: "rotate"},
		"4 ":        {Scope: "cl?ims"},
		"":          {Topic: "none"},
		"0 1 2 3 4": {From: at},
	} {
		var got []string
		if _, err := Search([]string{path}, q, func(line Line) error {
			if line.RequestID != "" {
				got = append(got, line.RequestID)
			}
			return nil
		}); err != nil || strings.Join(got, " ") != strings.TrimSpace(want) {
			t.Errorf("%+v: %v, want %s; %v", q, got, want, err)
		}
	}
	if _, err := Search([]string{path}, Query{Topic: "[", From: at}, func(Line) error { return nil }); err == nil {
		t.Error("a bad pattern")
	}
}
