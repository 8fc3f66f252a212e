// The live view, as text, as JSON, and in a terminal.

package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

const topPolicy = operatorPolicy + `  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [access]
    for: ["*"]
`

// withReport starts a key service to which a sidecar has reported.
func withReport(t *testing.T) *testservice.KeyService {
	t.Helper()
	k := testservice.StartKeyService(t, topPolicy)
	report := view.Report{
		Host: "h1", Listens: []string{"10.0.0.1:9093"}, Uptime: 7300, Certificate: 3000,
		Connections: []view.Connection{{Principal: "alice", Remote: "10.1.2.3:4", Client: "billing", Since: 60, Certificate: 90}},
		Uses:        []view.Use{{Principal: "alice", Action: "read", Name: "claims", Requests: 3, Records: 12000, Bytes: 5 << 20, PerSecond: 40, Last: 1, ExpiresIn: 7}},
		Denials:     []view.Denial{{Principal: "mallory", Action: "write", Name: "claims", Code: "not-authorized", Count: 2, Last: 3}},
	}
	if err := as(t, k, "operator").Post(t.Context(), "/v1/sidecars", report, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	encryptionKey(t, k, "claims")
	return k
}

func TestTopOnce(t *testing.T) {
	k := withReport(t)
	shows(t, k, []string{"top", "--once"}, "h1", "alice", "12.0 k", "5.0 MiB", "mallory", "not-authorized", "billing", "1m 30s", "data keys", "encrypt")
	if out := shows(t, k, []string{"top"}, "alice"); strings.Contains(out, "\x1b") {
		t.Error("escape sequences where there is no terminal")
	}
	var seen operator.View
	asks(t, k, &seen, "top")
	if len(seen.Sidecars) != 1 || seen.Sidecars[0].Uses[0].Records != 12000 || len(seen.Leases) != 1 {
		t.Errorf("%+v", seen)
	}
	tool(t, "--config", k.Operator, "top", "--every", "1ms").fails(t, 1, "--every")
	k.Stop(t)
	tool(t, "--config", k.Operator, "top", "--once").fails(t, 1, "cannot be reached")
}

// terminal opens both ends of a pseudo-terminal of a size.
func terminal(t *testing.T, rows, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// In a terminal the view is drawn again and again within its size, and the screen is as before at the end.
func TestTopInATerminal(t *testing.T) {
	k := withReport(t)
	master, slave := terminal(t, 8, 60)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "--config", k.Operator, "top", "--every", "1s")
	cmd.Env = []string{runAsProgram + "=1", "HOME=" + t.TempDir()}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	screen := &testservice.Buffer{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for buffer := make([]byte, 4096); ; {
			n, err := master.Read(buffer)
			_, _ = screen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	until(t, "two pictures", func() bool { return strings.Count(screen.String(), home+bold+"cipherlane top") >= 2 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Error("the terminal stays open")
	}
	text := screen.String()
	if !strings.HasPrefix(text, otherScreen) || !strings.HasSuffix(text, backAgain) {
		t.Errorf("%q", text)
	}
	for _, want := range []string{"alice", yellow, red, "mallory", "…"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	picture := strings.Split(strings.Split(text, home)[1], clearLine)
	if len(picture) > 9 {
		t.Errorf("%d lines on 8", len(picture))
	}
	t.Log("\n" + strings.Join(picture, ""))
}
