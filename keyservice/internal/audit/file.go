// The file under the audit log: appended to and synced, and never left with half a record.

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

type file struct {
	file    *os.File
	path    string
	good    int64 // size up to which the file is whole and synced
	torn    bool  // something after good may be there
	found   found
	first   uint64    // place in the chain of its first line, 0 while it is empty
	born    time.Time // when its first line was written, or when it was opened
	maxSize int64
	maxAge  time.Duration
	retry   time.Time // no rotation is tried before, after one that failed
}

// found is what was there at the start.
type found struct {
	head     Head   // the last whole line
	chain    string // its name, as the first line of the last file says
	cut      int    // bytes of an unfinished one
	previous string // the name of the rotated file that held the last line, if the file itself held none
}

// openFile opens or creates the file, alone, and cuts off a record that a crash left unfinished: it was never answered [CL-AUD-004].
func openFile(o Options, log *slog.Logger) (_ *file, err error) {
	f, err := os.OpenFile(o.File, os.O_RDWR|os.O_APPEND|os.O_CREATE, files.SecretMode) // #nosec G304 -- the administrator's path
	if err != nil {
		return nil, err
	}
	s := &file{file: f, path: o.File, maxSize: o.MaxSize, maxAge: o.MaxAge, born: time.Now()}
	if err := s.prepare(log); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *file) prepare(log *slog.Logger) error {
	if err := files.CheckSecret(s.path); err != nil {
		return err
	}
	if err := lock(s.file); err != nil {
		return err
	}
	if err := s.findEnd(log); err != nil {
		return err
	}
	if err := s.findHead(); err != nil {
		return err
	}
	return files.SyncFolder(filepath.Dir(s.path))
}

func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use by another process: %w", f.Name(), err)
	}
	return nil
}

func (s *file) findEnd(log *slog.Logger) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	tail := make([]byte, min(info.Size(), MaxLine))
	if _, err := s.file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.found.cut = len(tail) - 1 - bytes.LastIndexByte(tail, '\n')
	if s.found.cut == MaxLine {
		return fmt.Errorf("%s is not an audit log: its last line has no end. Move it away", s.path)
	}
	s.good = info.Size() - int64(s.found.cut)
	if s.found.cut == 0 {
		return nil
	}
	log.Warn("the audit log ended in an unfinished record, which was never answered; it is cut off", "path", s.path, "bytes", s.found.cut)
	return s.repair()
}

// append returns nil only when text is on disk, and leaves nothing of it behind otherwise. After a failure, which may have left half
// a record, the file is first cut back to where it was whole.
func (s *file) append(text []byte) error {
	if s.torn {
		if err := s.repair(); err != nil {
			return err
		}
	}
	if err := s.checkPlace(); err != nil {
		return err
	}
	s.torn = true
	if _, err := s.file.Write(text); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.good += int64(len(text))
	s.torn = false
	return nil
}

func (s *file) repair() error {
	if err := s.file.Truncate(s.good); err != nil {
		return err
	}
	s.torn = false
	return s.file.Sync()
}

// inPlace tells whether the file is still the one at its path.
func (s *file) inPlace() (bool, error) {
	here, err := s.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(here, there), err
}

// checkPlace notices that the file was moved, deleted or changed by someone else: what is written then is lost to the
// one who looks for it.
func (s *file) checkPlace() error {
	if same, err := s.inPlace(); err != nil {
		return err
	} else if !same {
		return fmt.Errorf("%s was moved away; send SIGHUP, and a new file is begun", s.path)
	}
	here, err := s.file.Stat()
	if err != nil {
		return err
	}
	if here.Size() != s.good {
		return fmt.Errorf("%s has %d bytes, not %d: someone else writes to it; restart the service", s.path, here.Size(), s.good)
	}
	return nil
}

func (s *file) close() error { return s.file.Close() }
