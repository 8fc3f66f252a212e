package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// [CL-API-018]
func TestSecretModes(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o400} {
		if path := fileOf(t, mode); CheckSecret(path) != nil {
			t.Errorf("%04o: %v", mode, CheckSecret(path))
		}
	}
	for _, mode := range []fs.FileMode{0o640, 0o620, 0o604, 0o602, 0o610, 0o601, 0o644, 0o666, 0o777, 0o660} {
		path := fileOf(t, mode)
		if err := CheckSecret(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("%04o: %v", mode, err)
		}
		if _, err := ReadSecret(path, 10); err == nil {
			t.Errorf("%04o was read", mode)
		}
	}
}

func fileOf(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := errors.Join(os.WriteFile(path, []byte("secret"), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFolderModes(t *testing.T) {
	path := fileOf(t, 0o600)
	dir := filepath.Dir(path)
	for mode, allowed := range map[fs.FileMode]bool{
		0o700: true, 0o755: true, 0o777 | fs.ModeSticky: true, 0o777: false, 0o770: false, 0o702: false, 0o720: false,
	} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckSecret(path); (err == nil) != allowed {
			t.Errorf("%v: %v", mode, err)
		}
		if _, err := ReadSecret(path, 10); (err == nil) != allowed {
			t.Errorf("%v: read: %v", mode, err)
		}
	}
}

func TestForeignOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := fileOf(t, 0o600)
	if err := os.Chown(path, 12345, 0); err != nil {
		t.Fatal(err)
	}
	if err := CheckSecret(path); err == nil || !strings.Contains(err.Error(), "user id 12345") {
		t.Fatal(err)
	}
}

func TestNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	if err := CheckSecret(dir); err == nil {
		t.Error("a folder was taken")
	}
	if err := CheckSecret(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := CheckSecret("/dev/null"); err == nil {
		t.Error("a device was taken")
	}
}

func TestReadLimit(t *testing.T) {
	path := fileOf(t, 0o600)
	if data, err := ReadSecret(path, 6); err != nil || string(data) != "secret" {
		t.Error(data, err)
	}
	if _, err := ReadSecret(path, 5); err == nil {
		t.Error("more than the limit was read")
	}
	if _, err := ReadTrusted(path, 5); err == nil {
		t.Error("more than the limit was read")
	}
}

func TestCreateSecretReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := CreateSecret(path, []byte("a")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	if err := CreateSecret(path, []byte("b")); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	link := path + ".link"
	if err := os.Symlink(path+".target", link); err != nil {
		t.Fatal(err)
	}
	if err := CreateSecret(link, []byte("c")); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("followed a link: %v", err)
	}
}
