// The policy file that is in force, and its replacement while the service runs.

package policy

import (
	"sync/atomic"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// File is a policy file and what was last read from it. Safe for concurrent use.
type File struct {
	path    string
	current atomic.Pointer[Policy]
}

// Open reads the file for the first time.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Reload reads the file again. When it is invalid, nothing changes and the error names the line [CL-POL-005].
func (f *File) Reload() error {
	data, err := files.ReadTrusted(f.path, strictyaml.MaxSize)
	if err != nil {
		return err
	}
	p, err := Parse(f.path, data)
	if err != nil {
		return err
	}
	f.current.Store(p)
	return nil
}

// Current gives the policy in force.
func (f *File) Current() *Policy { return f.current.Load() }
