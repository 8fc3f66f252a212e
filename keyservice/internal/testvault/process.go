// The child process of a server.

package testvault

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// process is a child with its output.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

func startProcess(t testing.TB, binary, dir string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.Background(), binary, args...), exited: make(chan struct{})} // #nosec G204 -- a test's own child
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GOMAXPROCS=2")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	reader, writer := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.collect(reader)
	go func() {
		_ = p.cmd.Wait()
		_ = writer.Close()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of Vault's output:\n%s", p.tail())
		}
	})
	return p
}

func (p *process) collect(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		p.mu.Lock()
		p.output.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// tail gives the end of the output, without the secrets that a server in dev mode prints.
func (p *process) tail() string {
	var kept strings.Builder
	for line := range strings.Lines(p.text()) {
		if !strings.Contains(line, "Unseal Key") && !strings.Contains(line, "Root Token") {
			kept.WriteString(line)
		}
	}
	return kept.String()[max(0, kept.Len()-4000):]
}

func (p *process) wait(t testing.TB, text string) {
	t.Helper()
	Eventually(t, "Vault says "+text, func() bool {
		select {
		case <-p.exited:
			t.Fatalf("Vault ended:\n%s", p.tail())
		default:
		}
		return strings.Contains(p.text(), text)
	})
}

// after gives the rest of the line that begins with a text.
func (p *process) after(t testing.TB, begin string) string {
	t.Helper()
	p.wait(t, begin)
	for line := range strings.Lines(p.text()) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("Vault did not say %q", begin)
	return ""
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
