// Package process finds out which process of this host is at the other end of a loopback connection: by the kernel's socket diagnostics
// (netlink INET_DIAG) and /proc. Whatever cannot be told for sure is an error, and the connection is nobody's.
package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// Errors of Find.
var (
	ErrRemote    = errors.New("the connection does not come from this host")
	ErrGone      = errors.New("no process has the connection: it has ended, or this program may not look into other users' processes (CAP_SYS_PTRACE)")
	ErrAmbiguous = errors.New("several processes have the connection, and they are not the same program of the same user")
	ErrNobody    = errors.New("no rule of processes gives this process a principal")
)

// Process is one that runs on this host.
type Process struct {
	PID        int32
	UID        uint32 // effective
	Executable string // path, as the kernel knows it
	SHA256     string // of the executable, in hexadecimal
	Labels     map[string]string
}

// Rule gives a principal to processes. What is not given fits every process.
type Rule struct {
	Principal  string
	UID        *uint32
	Executable string // path
	SHA256     string
}

func (r Rule) fits(p *Process) bool {
	return (r.UID == nil || *r.UID == p.UID) && (r.Executable == "" || r.Executable == p.Executable) && (r.SHA256 == "" || r.SHA256 == p.SHA256)
}

// Found is a process and the name that the rules give it.
type Found struct {
	*Process

	Principal string
}

// Policy is the process as conditions of the policy see it.
func (f Found) Policy() *policy.Process {
	return &policy.Process{UID: int64(f.UID), Executable: f.Executable, SHA256: f.SHA256, Labels: f.Labels}
}

// Finder finds processes. It is safe for concurrent use; make it with New.
type Finder struct {
	rules  []Rule
	labels map[string]string
	hashes *hashes
	proc   string // where the kernel shows processes
}

// New makes one. The first rule that fits a process names it; labels are given to all.
func New(rules []Rule, labels map[string]string) *Finder {
	return &Finder{rules: rules, labels: labels, hashes: newHashes(), proc: "/proc"}
}

// Find tells which process has the client's end of a connection. client and local are as the accepted connection tells them.
//
// Errors: ErrRemote, ErrGone, ErrAmbiguous, ErrNobody, and those of the operating system.
func (f *Finder) Find(client, local net.Addr) (Found, error) {
	p, err := f.Look(client, local)
	if err != nil {
		return Found{}, err
	}
	for _, r := range f.rules {
		if r.fits(p) {
			return Found{p, r.Principal}, nil
		}
	}
	return Found{Process: p}, fmt.Errorf("%w: pid %d, uid %d, %s, SHA-256 %s", ErrNobody, p.PID, p.UID, p.Executable, p.SHA256)
}

// Look is Find without the rules.
func (f *Finder) Look(client, local net.Addr) (*Process, error) {
	inode, uid, err := socketOf(client, local)
	if err != nil {
		return nil, err
	}
	owners, err := f.owners(inode)
	if err != nil {
		return nil, err
	}
	var found *Process
	for _, pid := range owners {
		p, err := f.describe(pid)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrGone, err)
		case found != nil && (found.UID != p.UID || found.SHA256 != p.SHA256):
			return nil, ErrAmbiguous
		case found == nil:
			found = p
		}
	}
	if found == nil || found.UID != uid {
		return nil, ErrGone
	}
	return found, f.still(found.PID, inode, client, local)
}

// socketOf asks the kernel for the socket at the client's end.
func socketOf(client, local net.Addr) (inode, uid uint32, err error) {
	from, to, err := addressesOf(client, local)
	if err != nil {
		return 0, 0, err
	}
	inode, uid, err = lookUp(from, to)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("%w: %w", ErrGone, err)
	case inode == 0: // closed already
		return 0, 0, ErrGone
	}
	return inode, uid, nil
}

// owners gives the processes that have a socket, the lowest id first.
func (f *Finder) owners(inode uint32) ([]int32, error) {
	entries, err := os.ReadDir(f.proc)
	if err != nil {
		return nil, err
	}
	var pids []int32
	for _, entry := range entries {
		pid, err := strconv.ParseInt(entry.Name(), 10, 32)
		if err == nil && f.has(int32(pid), inode) {
			pids = append(pids, int32(pid))
		}
	}
	slices.Sort(pids)
	return pids, nil
}

func (f *Finder) path(pid int32, name string) string {
	return filepath.Join(f.proc, strconv.Itoa(int(pid)), name)
}

// has tells whether a process has a socket among its files. One that has ended, or may not be looked into, has not.
func (f *Finder) has(pid int32, inode uint32) bool {
	dir := f.path(pid, "fd")
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	want := fmt.Sprintf("socket:[%d]", inode)
	return slices.ContainsFunc(files, func(file os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(dir, file.Name()))
		return err == nil && target == want
	})
}

// describe reads what is known of a process. Its start time must be the same before and after: else another process has its id now.
func (f *Finder) describe(pid int32) (*Process, error) {
	before, err := f.started(pid)
	if err != nil {
		return nil, err
	}
	uid, err := f.uid(pid)
	if err != nil {
		return nil, err
	}
	executable, err := os.Readlink(f.path(pid, "exe"))
	if err != nil {
		return nil, err
	}
	sum, err := f.hashes.of(f.path(pid, "exe"))
	if err != nil {
		return nil, err
	}
	if after, err := f.started(pid); err != nil || after != before {
		return nil, ErrGone
	}
	return &Process{pid, uid, executable, sum, f.labels}, nil
}

// started gives the time at which a process was started, in the kernel's own measure: the 22nd field of stat. The second, the name, may
// hold anything, so fields are counted from its end.
func (f *Finder) started(pid int32) (string, error) {
	text, err := os.ReadFile(f.path(pid, "stat"))
	if err != nil {
		return "", err
	}
	const field, afterName = 22, 3
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= field-afterName {
		return "", ErrGone
	}
	return fields[field-afterName], nil
}

// uid gives the effective user.
func (f *Finder) uid(pid int32) (uint32, error) {
	text, err := os.ReadFile(f.path(pid, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		const effective = 2
		if fields := strings.Fields(line); len(fields) > effective && fields[0] == "Uid:" {
			uid, err := strconv.ParseUint(fields[effective], 10, 32)
			return uint32(uid), err
		}
	}
	return 0, ErrGone
}

// still sees that the connection is what it was, and the process has it.
func (f *Finder) still(pid int32, inode uint32, client, local net.Addr) error {
	again, _, err := socketOf(client, local)
	if err != nil {
		return err
	}
	if again != inode || !f.has(pid, inode) {
		return ErrGone
	}
	return nil
}
