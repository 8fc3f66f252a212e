// Rotation of the file: it gets a name with the place of its first line, and a new file goes on with the chain [CL-AUD-003].

package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

// rotateAgain is how long after a rotation that failed the next is tried. Until then the old file is written.
const rotateAgain = 10 * time.Second

// Rotate begins a new file now: when the file holds anything but its first line, or was moved away by someone else. Without a file it does nothing.
func (w *Writer) Rotate() error {
	answer := make(chan error, 1)
	select {
	case w.rotates <- answer:
		return <-answer
	case <-w.stopped:
		return errClosed
	}
}

func (w *Writer) rotateWhenDue() {
	if w.file == nil || !w.file.due(time.Now()) {
		return
	}
	if err := w.rotate(); err != nil {
		w.log.Error("the audit log could not be rotated; it goes on in the same file", "error", err)
	}
}

func (s *file) due(now time.Time) bool {
	full := s.maxSize > 0 && s.good >= s.maxSize || s.maxAge > 0 && now.Sub(s.born) >= s.maxAge
	return full && s.first > 0 && now.After(s.retry)
}

func (w *Writer) rotate() error {
	if w.file == nil {
		return nil
	}
	old, head := w.file, w.Head()
	inPlace, err := old.inPlace()
	if err != nil || inPlace && old.first >= head.Seq {
		return err
	}
	next, text, newHead, err := old.successor(w.name, head, inPlace)
	if err != nil {
		old.retry = time.Now().Add(rotateAgain)
		return err
	}
	w.file = next
	w.advance(newHead)
	w.log.Info("the audit log was rotated", "path", next.path, "previous_head", head.String())
	return errors.Join(offer(w.outlets, text), old.close())
}

// successor makes the file that goes on after s, with its first line, and puts it in the place of s.
func (s *file) successor(name string, head Head, inPlace bool) (_ *file, text []byte, next Head, err error) {
	if s.torn {
		if err := s.repair(); err != nil {
			return nil, nil, head, err
		}
	}
	begin := Record{Time: time.Now(), Action: ActionRotate, Outcome: Allowed, Chain: name}
	if inPlace {
		begin.PreviousFile = filepath.Base(rotatedName(s.path, s.first))
	}
	objects, err := begin.objects()
	if err != nil {
		return nil, nil, head, err
	}
	text, next = head.link(nil, objects[0])
	made, err := s.create(text)
	if err != nil {
		return nil, nil, head, err
	}
	made.first = next.Seq
	if err := s.replace(made, inPlace); err != nil {
		return nil, nil, head, errors.Join(err, made.close())
	}
	return made, text, next, nil
}

const newSuffix = ".new"

func (s *file) create(text []byte) (*file, error) {
	path := s.path + newSuffix
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a crash: no line of it was ever answered
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, files.SecretMode) // #nosec G304 -- the administrator's path
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), lock(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{file: f, path: s.path, good: int64(len(text)), born: time.Now(), maxSize: s.maxSize, maxAge: s.maxAge}, nil
}

// replace gives the old file its second name first and then puts the new one over its first: at every moment both the lines before
// and a file at the usual place are there.
func (s *file) replace(made *file, inPlace bool) error {
	if inPlace {
		rotated := rotatedName(s.path, s.first)
		if err := os.Link(s.path, rotated); err != nil && !sameFile(s.path, rotated) {
			return err
		}
	} else if info, err := os.Stat(s.path); err == nil && info.Size() > 0 {
		return fmt.Errorf("%s is a file of someone else's: move it away", s.path)
	}
	if err := os.Rename(s.path+newSuffix, made.path); err != nil {
		return err
	}
	return files.SyncFolder(filepath.Dir(s.path))
}

func sameFile(a, b string) bool {
	one, errA := os.Stat(a)
	other, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(one, other)
}

// rotatedName sorts in the order of the chain.
func rotatedName(path string, first uint64) string { return fmt.Sprintf("%s.%012d", path, first) }

// Files gives the files of a log in the order of the chain: those rotated away and still there, and the current one.
func Files(path string) ([]string, error) {
	rotated, err := rotatedFiles(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return rotated, err
	}
	return slices.DeleteFunc(append(rotated, path), func(one string) bool { return one != path && sameFile(one, path) }), nil
}

func rotatedFiles(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries { // in the order of their names
		number, ours := strings.CutPrefix(entry.Name(), filepath.Base(path)+".")
		if ours && len(number) >= 12 && strings.Trim(number, "0123456789") == "" {
			found = append(found, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return found, nil
}

// findHead finds where the chain goes on: at the last line of the file or, if it has none, of the last file rotated.
func (s *file) findHead() error {
	if s.good > 0 {
		first, err := lineAt(s.file, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		s.first, s.born, s.found.chain = first.Seq, first.Time, first.Chain
		s.found.head, err = lastHead(s.file, s.good)
		return err
	}
	rotated, err := rotatedFiles(s.path)
	if err != nil || len(rotated) == 0 {
		s.first = 1
		return err
	}
	last := rotated[len(rotated)-1]
	f, err := os.Open(last) // #nosec G304 -- beside the administrator's path
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	first, err := lineAt(f, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", last, err)
	}
	s.found.previous, s.found.chain = filepath.Base(last), first.Chain
	s.found.head, err = lastHead(f, info.Size())
	s.first = s.found.head.Seq + 1
	return err
}

// lineAt reads the line that begins at offset.
func lineAt(f *os.File, offset int64) (Line, error) {
	text := make([]byte, MaxLine)
	n, err := f.ReadAt(text, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return Line{}, err
	}
	text, _, ended := bytes.Cut(text[:n], []byte("\n"))
	if !ended {
		return Line{}, errNotALog
	}
	return parseLine(text)
}

var errNotALog = errors.New("it is not an audit log that this service can go on with: move it away")

// parseLine reads a line without its end.
func parseLine(text []byte) (Line, error) {
	var line Line
	if err := json.Unmarshal(text, &line); err != nil || line.Seq == 0 || len(line.Prev) != 2*len(Hash{}) {
		return line, errNotALog
	}
	return line, nil
}

// lastHead gives the head that the first size bytes of a file, whole lines, lead to.
func lastHead(f *os.File, size int64) (Head, error) {
	tail := make([]byte, min(size, MaxLine))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return Head{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	text, ended := bytes.CutSuffix(tail, []byte("\n"))
	text = text[bytes.LastIndexByte(text, '\n')+1:]
	line, err := parseLine(text)
	if err != nil || !ended {
		return Head{}, fmt.Errorf("%s: the last line: %w", f.Name(), errNotALog)
	}
	return Head{Seq: line.Seq, Hash: sha256.Sum256(text)}, nil
}
