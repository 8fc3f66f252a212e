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

	"golang.org/x/sys/unix"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

type fileSink struct {
	file *os.File
	path string
	good int64 // size up to which the file is whole and synced
	torn bool  // something after good may be there
}

// openFileSink opens or creates the file, alone, and cuts off a record that a crash left unfinished: it was
// never answered.
func openFileSink(path string, log *slog.Logger) (_ *fileSink, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, files.SecretMode) // #nosec G304 -- the administrator's path
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	s := &fileSink{file: f, path: path}
	if err := s.prepare(log); err != nil {
		return nil, errors.Join(fmt.Errorf("open the audit log: %w", err), f.Close())
	}
	return s, nil
}

func (s *fileSink) prepare(log *slog.Logger) error {
	if err := files.CheckSecret(s.path); err != nil {
		return err
	}
	if err := unix.Flock(int(s.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use by another process: %w", s.path, err)
	}
	if err := s.findEnd(log); err != nil {
		return err
	}
	return files.SyncFolder(filepath.Dir(s.path))
}

func (s *fileSink) findEnd(log *slog.Logger) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	tail := make([]byte, min(info.Size(), MaxLine))
	if _, err := s.file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	unfinished := len(tail) - 1 - bytes.LastIndexByte(tail, '\n')
	if unfinished == MaxLine {
		return fmt.Errorf("%s is not an audit log: its last line has no end. Move it away", s.path)
	}
	s.good = info.Size() - int64(unfinished)
	if unfinished == 0 {
		return nil
	}
	log.Warn("the audit log ended in an unfinished record, which was never answered; it is cut off", "path", s.path, "bytes", unfinished)
	return s.repair()
}

// append implements sink. After a failure, which may have left half a record, the file is first cut back to where
// it was whole.
func (s *fileSink) append(lines []byte) error {
	if s.torn {
		if err := s.repair(); err != nil {
			return err
		}
	}
	if err := s.checkPlace(); err != nil {
		return err
	}
	s.torn = true
	if _, err := s.file.Write(lines); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.good += int64(len(lines))
	s.torn = false
	return nil
}

func (s *fileSink) repair() error {
	if err := s.file.Truncate(s.good); err != nil {
		return err
	}
	s.torn = false
	return s.file.Sync()
}

// checkPlace notices that the file was moved, deleted or changed by someone else: what is written then is lost to the
// one who looks for it.
func (s *fileSink) checkPlace() error {
	here, err := s.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if !os.SameFile(here, there) {
		return fmt.Errorf("%s is another file than was opened; restart the service after moving it", s.path)
	}
	if here.Size() != s.good {
		return fmt.Errorf("%s has %d bytes, not %d: someone else writes to it; restart the service", s.path, here.Size(), s.good)
	}
	return nil
}

func (s *fileSink) close() error { return s.file.Close() }
