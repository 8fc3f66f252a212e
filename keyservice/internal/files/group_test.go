// Files of root's for a group: tried by a child process that runs as another user.

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	readAs = "CIPHERLANE_TEST_READ_AS" // what the child is to try: credential, secret or folder, and a path
	group  = 54321
)

func TestMain(m *testing.M) {
	if job := os.Getenv(readAs); job != "" {
		os.Exit(try(job))
	}
	os.Exit(m.Run())
}

func try(job string) int {
	kind, path, _ := strings.Cut(job, " ")
	var err error
	switch kind {
	case "credential":
		_, err = ReadCredential(path, 100)
	case "secret":
		_, err = ReadSecret(path, 100)
	default:
		err = CheckFolder(path)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// child tries as an ordinary user of the group and tells whether that was allowed.
func child(t *testing.T, kind, path string) bool {
	t.Helper()
	program := filepath.Join(filepath.Dir(filepath.Dir(path)), "program")
	if kind == "folder" {
		program = filepath.Join(filepath.Dir(path), "program")
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{readAs + "=" + kind + " " + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: group, Gid: 1, Groups: []uint32{group}}}
	out, err := cmd.CombinedOutput()
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && (!ended || exit.ExitCode() != 1) {
		t.Fatal(err, string(out))
	}
	return err == nil
}

// [CL-API-018] What Kubernetes lays down with fsGroup is taken as a credential; as a store's secret it is not, nor is anything looser.
func TestGroupOfTheService(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT ROOT: files of root's for a group were not tried")
	}
	base, err := os.MkdirTemp("", "files") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	dir := filepath.Join(base, "d")
	path := filepath.Join(dir, "key.pem")
	err = errors.Join(err, os.WriteFile(filepath.Join(base, "program"), program, 0o700), os.Chmod(filepath.Join(base, "program"), 0o755),
		os.Chmod(base, 0o755), os.Mkdir(dir, 0o700), os.WriteFile(path, []byte("secret"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind            string
		dir, file       fs.FileMode
		owner, dirGroup int
		fileGroup       int
		allowed         bool
	}{
		{"credential", 0o755, 0o440, 0, 0, group, true},
		{"credential", 0o755, 0o640, 0, 0, group, true},
		{"credential", 0o775 | fs.ModeSetgid, 0o440, 0, group, group, true},
		{"credential", 0o777 | fs.ModeSticky, 0o440, 0, group, group, true},
		{"secret", 0o755, 0o440, 0, 0, group, false},
		{"credential", 0o755, 0o460, 0, 0, group, false},
		{"credential", 0o755, 0o660, 0, 0, group, false},
		{"credential", 0o755, 0o444, 0, 0, group, false},
		{"credential", 0o755, 0o440, group, 0, group, false}, // its owner could give itself more
		{"credential", 0o777, 0o440, 0, group, group, false},
		{"credential", 0o775, 0o440, 0, 0, group, false},
		{"folder", 0o770, 0o600, 0, group, group, true},
		{"folder", 0o770, 0o600, group, group, group, false},
		{"folder", 0o772, 0o600, 0, group, group, false},
		{"folder", 0o775, 0o600, 0, 99, group, false},
	} {
		err := errors.Join(os.Chown(dir, 0, c.dirGroup), os.Chown(path, c.owner, c.fileGroup), os.Chmod(path, c.file), os.Chmod(dir, c.dir))
		if c.kind == "folder" {
			err = errors.Join(err, os.Chown(dir, c.owner, c.dirGroup), os.Chmod(dir, c.dir))
		}
		if err != nil {
			t.Fatal(err)
		}
		at := path
		if c.kind == "folder" {
			at = dir
		}
		if got := child(t, c.kind, at); got != c.allowed {
			t.Errorf("%+v: allowed %v", c, got)
		}
	}
}
