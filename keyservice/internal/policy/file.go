// The policy file that is in force, and its replacement while the service runs.

package policy

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// File is a policy file and what was last read from it. Safe for concurrent use.
type File struct {
	path    string
	current atomic.Pointer[Policy]

	mu   sync.Mutex
	seen [sha256.Size]byte // of the content that was looked at last, good or bad
}

// Open reads the file for the first time.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Reload reads the file again. When it is invalid, nothing changes and the error names line and rule [CL-POL-014].
func (f *File) Reload() error {
	_, err := f.read(true)
	return err
}

// ReloadChanged reads the file again if its content has changed since it was last read, and tells whether it had. It
// goes by the content, so that it sees a file that was replaced, and a symbolic link that leads elsewhere now, as
// Kubernetes does. An invalid file is told once.
func (f *File) ReloadChanged() (changed bool, err error) { return f.read(false) }

func (f *File) read(always bool) (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := files.ReadTrusted(f.path, strictyaml.MaxSize)
	sum := sha256.Sum256(data)
	if err != nil {
		sum = sha256.Sum256([]byte("unreadable: " + err.Error()))
	}
	if sum == f.seen && !always {
		return false, nil
	}
	f.seen = sum
	if err != nil {
		return true, err
	}
	p, err := Parse(f.path, data)
	if err != nil {
		return true, err
	}
	f.current.Store(p)
	return true, nil
}

// Current gives the policy in force.
func (f *File) Current() *Policy { return f.current.Load() }
