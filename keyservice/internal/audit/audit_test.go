package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t *testing.T, path string) *Writer {
	t.Helper()
	l, err := Open(Options{Name: "test", File: path}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func lines(t *testing.T, path string) []Record {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []Record
	for line := range bytes.Lines(data) {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil || line[len(line)-1] != '\n' || len(line) > MaxLine {
			t.Fatalf("line of %d bytes %q: %v", len(line), line, err)
		}
		if r.Action != ActionStart && r.Action != ActionRotate {
			all = append(all, r)
		}
	}
	return all
}

func record(id string) Record {
	return Record{Time: time.Now(), RequestID: id, Principal: "p", Action: "encrypt", Topic: "t", Outcome: Allowed}
}

// [CL-API-013]
func TestARecordIsInTheFileWhenWriteReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for i := range 20 {
		if err := l.Write(t.Context(), record(strconv.Itoa(i)), record("second")); err != nil {
			t.Fatal(err)
		}
		if got := lines(t, path); len(got) != 2*(i+1) || got[2*i].RequestID != strconv.Itoa(i) {
			t.Fatalf("%d lines after %d records", len(got), 2*(i+1))
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	const writers, each = 50, 20
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
	wait.Wait()
	seen := map[string]bool{}
	for _, r := range lines(t, path) {
		seen[r.RequestID] = true
	}
	if len(seen) != writers*each {
		t.Fatalf("%d records of %d", len(seen), writers*each)
	}
}

func TestLongRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	r := record("long")
	r.Topic, r.Principal, r.Scope = strings.Repeat("\x01", 60_000), strings.Repeat("\xff", 5000), strings.Repeat("s", 300)
	for i := range 1000 {
		r.Kids = append(r.Kids, fmt.Sprintf("%032x", i))
	}
	if err := l.Write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	kids := map[string]bool{}
	for _, got := range lines(t, path) { // checks the length of each line
		if !strings.HasSuffix(got.Topic, "... (60000 bytes)") || !strings.HasSuffix(got.Scope, "... (300 bytes)") {
			t.Errorf("not marked as shortened: %q, %q", got.Topic[240:], got.Scope)
		}
		for _, kid := range got.Kids {
			kids[kid] = true
		}
	}
	if len(kids) != 1000 {
		t.Fatalf("%d kids of 1000 are in the log", len(kids))
	}
}

// limitFiles makes writes behind size fail, for this process, until the test ends.
func limitFiles(t *testing.T, size int64) (restore func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	restore = func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(size), Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return restore
}

// [CL-API-013] A write that the system cuts off in the middle leaves nothing behind, and the log recovers.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	if err := l.Write(t.Context(), record("before")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	restore := limitFiles(t, info.Size()+20)
	for range 3 {
		if err := l.Write(t.Context(), record("refused")); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("written on a full disk: %v", err)
		}
		if err := l.Check(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("healthy on a full disk: %v", err)
		}
	}
	restore()
	if err := l.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(t.Context(), record("after")); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, path); len(got) != 3 || got[0].RequestID != "before" || got[1].Action != "audit-check" || got[2].RequestID != "after" {
		t.Fatalf("%+v", got)
	}
}

// [CL-API-013] [CL-AUD-005] A sink that must accept and hangs.
func TestHungSink(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(Options{Name: "test", Stdout: writer}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	var failed int
	for range 1000 { // a pipe takes 64 KiB
		start := time.Now()
		err := l.Write(t.Context(), Record{Action: "encrypt", Kids: make([]string, 300)})
		if took := time.Since(start); took > 1500*time.Millisecond {
			t.Fatalf("waited %s", took)
		}
		if err != nil {
			if !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
			failed++
			if failed == 2 {
				break
			}
		}
	}
	if failed != 2 {
		t.Fatal("the pipe never filled")
	}
	if err := l.Check(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("healthy on a hung sink: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// [CL-API-013] A writer that hangs, as on a disk that no longer answers, delays a caller no longer than the deadline.
func TestHungDisk(t *testing.T) {
	l := newWriter(quiet()) // which nothing runs
	start := time.Now()
	if err := l.Write(t.Context(), record("x")); !errors.Is(err, ErrUnavailable) || time.Since(start) > 1500*time.Millisecond {
		t.Fatalf("%v after %s", err, time.Since(start))
	}
}

func TestAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(t.Context(), record("late")); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	if got := lines(t, path); len(got) != 0 {
		t.Fatal(got)
	}
}

func TestCanceled(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // either way is taken at random when both are ready
		if err := l.Write(ctx, record("x")); err != nil && !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

// [CL-API-013] What is written to a file that nobody finds is lost.
func TestMovedOrChangedFile(t *testing.T) {
	for name, disturb := range map[string]func(path string) error{
		"moved":     func(path string) error { return os.Rename(path, path+".1") },
		"deleted":   os.Remove,
		"replaced":  func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
		"truncated": func(path string) error { return os.Truncate(path, 0) },
		"appended": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("{}\n")
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := open(t, path)
			if err := errors.Join(l.Write(t.Context(), record("before")), disturb(path)); err != nil {
				t.Fatal(err)
			}
			if err := l.Write(t.Context(), record("after")); !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
		})
	}
}

func TestUnfinishedLastRecordIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	if err := errors.Join(l.Write(t.Context(), record("whole")), l.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := whole[bytes.IndexByte(whole, '\n')+1:]
	for cut := 1; cut < len(second); cut += 7 {
		if err := os.WriteFile(path, append(bytes.Clone(whole), second[:cut]...), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		l, err := Open(Options{Name: "test", File: path}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Write(t.Context(), record("next")), l.Close()); err != nil {
			t.Fatal(err)
		}
		if got := lines(t, path); len(got) != 2 || got[1].RequestID != "next" || !strings.Contains(log.String(), fmt.Sprintf("bytes=%d", cut)) {
			t.Fatalf("%+v, %s", got, log.String())
		}
		if r := verify(t, Expect{}, path); !r.Whole() || r.Cut != 1 || r.Starts != 2 { // [CL-AUD-004]
			t.Fatalf("cut at %d: %+v", cut, r)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"readable by the group": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o640)) },
		"writable by others":    func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o602)) },
		"loose folder":          func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
		"a folder":              func(path string) error { return os.Mkdir(path, 0o700) },
		"a FIFO":                func(path string) error { return unix.Mkfifo(path, 0o600) },
		"no folder":             func(path string) error { return os.Remove(filepath.Dir(path)) },
		"not an audit log":      func(path string) error { return os.WriteFile(path, make([]byte, 20_000), 0o600) },
		"lines of no chain":     func(path string) error { return os.WriteFile(path, []byte("{}\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			path := filepath.Join(dir, "audit.jsonl")
			if err := errors.Join(os.Mkdir(dir, 0o700), prepare(path)); err != nil {
				t.Fatal(err)
			}
			if l, err := Open(Options{Name: "test", File: path}, quiet()); err == nil {
				_ = l.Close()
				t.Fatal("opened")
			}
		})
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	open(t, path)
	if _, err := Open(Options{Name: "test", File: path}, quiet()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("opened twice: %v", err)
	}
}
