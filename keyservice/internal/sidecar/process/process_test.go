package process

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const dialTo = "CIPHERLANE_TEST_DIAL"

// TestMain lets the test binary be a client: it connects, and waits for its standard input to close.
func TestMain(m *testing.M) {
	if to := os.Getenv(dialTo); to != "" {
		conn, err := net.Dial("tcp", to)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("connected")
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = conn.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a program that has connected.
type child struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	accepted net.Conn
}

func (c *child) end(t *testing.T) {
	t.Helper()
	_ = c.stdin.Close()
	_ = c.cmd.Wait()
}

// connect runs a copy of the test binary, perhaps through another program, and lets it connect.
func connect(t *testing.T, address, binary string, through ...string) *child {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("no %s here: %v", address, err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	args := append(through, binary) //nolint:gocritic // a new list
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	cmd.Env = []string{dialTo + "=" + listener.Addr().String()}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, stdin: stdin}
	t.Cleanup(func() { c.end(t) })
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "connected\n" {
		t.Fatalf("%q", line)
	}
	if c.accepted, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.accepted.Close() })
	return c
}

// copied gives a copy of the test binary that everybody may run, with some bytes behind it that make it another program.
func copied(t *testing.T, more string) (path, sum string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "process-") //nolint:usetesting // that of the test may be entered by its user only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path, data = filepath.Join(dir, "client"), append(data, more...)
	if err := errors.Join(os.WriteFile(path, data, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(data)
	return path, hex.EncodeToString(hash[:])
}

// [CL-ACC-014]
func TestFindsTheProcess(t *testing.T) {
	binary, sum := copied(t, "a")
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		c := connect(t, address, binary)
		f := New([]Rule{{Principal: "other", SHA256: strings.Repeat("0", 64)}, {Principal: "p", Executable: binary, SHA256: sum}}, map[string]string{"app": "x"})
		found, err := f.Find(c.accepted.RemoteAddr(), c.accepted.LocalAddr())
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if int(found.PID) != c.cmd.Process.Pid || found.UID != uint32(os.Geteuid()) || found.Executable != binary || found.SHA256 != sum ||
			found.Principal != "p" || found.Labels["app"] != "x" {
			t.Errorf("%s: %+v", address, found.Process)
		}
	}
}

// [CL-ACC-014] A process of another user is told as such.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of others")
	}
	binary, _ := copied(t, "b")
	const uid = 12345
	c := connect(t, "127.0.0.1:0", binary, "setpriv", "--reuid", strconv.Itoa(uid), "--regid", strconv.Itoa(uid), "--clear-groups")
	mine, other := uint32(0), uint32(uid)
	f := New([]Rule{{Principal: "root", UID: &mine}, {Principal: "other", UID: &other}}, nil)
	if found, err := f.Find(c.accepted.RemoteAddr(), c.accepted.LocalAddr()); err != nil || found.Principal != "other" || found.UID != uid {
		t.Errorf("%+v %v", found, err)
	}
}

// [CL-ACC-015] What cannot be told for sure is nobody's.
func TestNobody(t *testing.T) {
	binary, sum := copied(t, "c")
	c := connect(t, "127.0.0.1:0", binary)
	client, local := c.accepted.RemoteAddr(), c.accepted.LocalAddr()
	uid := uint32(99)
	for name, rules := range map[string][]Rule{
		"no rule": nil, "another user": {{Principal: "p", UID: &uid}}, "another program": {{Principal: "p", Executable: binary + "x", SHA256: sum}},
		"other bytes": {{Principal: "p", Executable: binary, SHA256: strings.Repeat("0", 64)}},
	} {
		if found, err := New(rules, nil).Find(client, local); !errors.Is(err, ErrNobody) || found.Principal != "" {
			t.Errorf("%s: %+v %v", name, found, err)
		}
	}
	anybody := New([]Rule{{Principal: "p"}}, nil)
	for name, pair := range map[string][2]net.Addr{
		"turned round to a listener that has no such peer": {&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, local},
		"another host": {&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}, local},
		"no TCP":       {&net.UnixAddr{Name: "x"}, local},
		"no listener":  {client, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}},
	} {
		if found, err := anybody.Find(pair[0], pair[1]); err == nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
	c.end(t)
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if _, err := anybody.Find(client, local); errors.Is(err, ErrGone) {
			return
		}
	}
	t.Error("a process that has ended is still found")
}

// [CL-ACC-015] A program that was replaced or deleted while it ran is what it was when it was started; two programs are nobody.
func TestReplacedAndShared(t *testing.T) {
	binary, sum := copied(t, "d")
	c := connect(t, "127.0.0.1:0", binary)
	f := New([]Rule{{Principal: "p"}}, nil)
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, []byte("something else"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := f.Find(c.accepted.RemoteAddr(), c.accepted.LocalAddr())
	if err != nil || found.SHA256 != sum || !strings.HasSuffix(found.Executable, " (deleted)") {
		t.Errorf("%+v %v", found.Process, err)
	}
	// A shell that connects, and a sleep that inherits the connection: not one program.
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%s; sleep 60 & wait", port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group that was made for it
		_ = cmd.Wait()
	}()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = accepted.Close() }()
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if _, err = f.Find(accepted.RemoteAddr(), accepted.LocalAddr()); errors.Is(err, ErrAmbiguous) {
			return
		}
	}
	t.Errorf("shared: %v", err)
}

// A file that changes under the same name has another hash, and what was read is remembered.
func TestHashes(t *testing.T) {
	h := newHashes()
	path := filepath.Join(t.TempDir(), "f")
	seen := map[string]bool{}
	for i := range 3 {
		if err := os.WriteFile(path, []byte(strconv.Itoa(i)), 0o600); err != nil {
			t.Fatal(err)
		}
		sum, err := h.of(path)
		again, err2 := h.of(path)
		if err != nil || err2 != nil || sum != again || seen[sum] {
			t.Errorf("%s %s %v %v", sum, again, err, err2)
		}
		seen[sum] = true
	}
	if len(h.known) > 3 {
		t.Error(len(h.known))
	}
	for _, bad := range []string{t.TempDir(), "/dev/null", path + "x"} {
		if sum, err := h.of(bad); err == nil {
			t.Errorf("%s: %s", bad, sum)
		}
	}
}
