// Package files opens the files that the key service depends on and refuses those that others could read or change.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// SecretMode is the mode of every file that holds keys, and of the audit log.
const SecretMode fs.FileMode = 0o600

// DirMode is the mode of folders made for such files.
const DirMode fs.FileMode = 0o700

const (
	groupOrOthers = 0o077
	othersWrite   = 0o002
	groupReads    = 0o040
	looseFolder   = 0o022
)

// CheckSecret refuses a file that group or others may read or write, and a folder in which they could replace it
// [CL-API-018].
func CheckSecret(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := checkSecretInfo(path, info); err != nil {
		return err
	}
	return CheckFolder(filepath.Dir(path))
}

func checkSecretInfo(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&groupOrOthers != 0 {
		return fmt.Errorf("%s has mode %04o: group or others may use it. Run: chmod 600 %s", path, mode, path)
	}
	return checkOwner(path, info)
}

// checkOwner refuses a file that another user laid there and may change.
func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user id %d, not to this one (%d) or root", path, stat.Uid, os.Geteuid())
	}
	return nil
}

// CheckFolder refuses a folder in which group or others may replace files. With the sticky bit they cannot.
func CheckFolder(dir string) error {
	info, err := os.Stat(dir) // #nosec G703 -- the path is the administrator's
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	if mode&othersWrite == 0 && ownGroup(info) {
		return nil
	}
	if mode&looseFolder != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("folder %s has mode %04o: group or others may replace its files. Run: chmod 700 %s", dir, mode, dir)
	}
	return nil
}

// ReadSecret reads a file of at most limit bytes that nobody else may use. The mode is that of the file opened, so
// that it cannot be exchanged in between.
func ReadSecret(path string, limit int64) ([]byte, error) {
	if err := CheckFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return readChecked(path, limit, checkSecretInfo)
}

// ReadCredential reads like ReadSecret, and also a file of root's that a group of this process's own may read: so Kubernetes, with
// fsGroup, and many packages lay down keys for a service.
func ReadCredential(path string, limit int64) ([]byte, error) {
	if err := CheckFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return readChecked(path, limit, func(path string, info fs.FileInfo) error {
		if mode := info.Mode().Perm(); info.Mode().IsRegular() && mode&groupOrOthers == groupReads && ownGroup(info) {
			return nil
		}
		return checkSecretInfo(path, info)
	})
}

// ownGroup tells whether a file is root's, of a group that this process is in and that is not root's own.
func ownGroup(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 0 || stat.Gid == 0 {
		return false
	}
	groups, err := os.Getgroups()
	return err == nil && (int(stat.Gid) == os.Getegid() || slices.Contains(groups, int(stat.Gid)))
}

// ReadTrusted reads a file of at most limit bytes that may be public but that not everybody may change.
func ReadTrusted(path string, limit int64) ([]byte, error) {
	return readChecked(path, limit, func(path string, info fs.FileInfo) error {
		if mode := info.Mode().Perm(); mode&othersWrite != 0 {
			return fmt.Errorf("%s has mode %04o: everybody may change it. Run: chmod o-w %s", path, mode, path)
		}
		return nil
	})
}

func readChecked(path string, limit int64, check func(string, fs.FileInfo) error) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 G703 -- the path is the administrator's
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

// CreateSecret writes a new file of mode 0600, synced with its folder. It refuses to replace one.
func CreateSecret(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, SecretMode) // #nosec G304 -- as above
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// ReplaceSecret puts a new content in place of a file's, whole or not at all: the file has mode 0600 and is synced with
// its folder.
func ReplaceSecret(path string, data []byte) error {
	next := path + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an attempt that was cut off
		return err
	}
	if err := CreateSecret(next, data); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes the names of new files in a folder last.
func SyncFolder(dir string) (err error) {
	d, err := os.Open(dir) // #nosec G304 -- as above
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}
