package process

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	maxHashes     = 1000
	maxExecutable = 1 << 30 // bytes
)

// file is what stays the same while a file does.
type file struct {
	device, inode     uint64
	modified, changed unix.Timespec
	size              int64
}

// hashes remembers the SHA-256 of files.
type hashes struct {
	mu    sync.Mutex
	known map[file]string
}

func newHashes() *hashes { return &hashes{known: map[file]string{}} }

// of gives the SHA-256 of what a path leads to, which may have been deleted.
func (h *hashes) of(path string) (string, error) {
	opened, err := os.Open(path) // #nosec G304 -- of /proc
	if err != nil {
		return "", err
	}
	defer func() { _ = opened.Close() }()
	before, err := fileOf(opened)
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock() // one at a time: hashing is work, and a second one of the same finds it done
	if sum, ok := h.known[before]; ok {
		return sum, nil
	}
	sum, err := read(opened)
	if err != nil {
		return "", err
	}
	if after, err := fileOf(opened); err != nil || after != before {
		return "", fmt.Errorf("%s was changed while it was read", path)
	}
	if len(h.known) >= maxHashes {
		clear(h.known)
	}
	h.known[before] = sum
	return sum, nil
}

func read(opened *os.File) (string, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(opened, maxExecutable+1))
	switch {
	case err != nil:
		return "", err
	case n > maxExecutable:
		return "", fmt.Errorf("the executable has more than %d bytes", maxExecutable)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func fileOf(opened *os.File) (file, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(opened.Fd()), &s); err != nil {
		return file{}, err
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG {
		return file{}, fmt.Errorf("%s is not a file", opened.Name())
	}
	return file{s.Dev, s.Ino, s.Mtim, s.Ctim, s.Size}, nil
}
