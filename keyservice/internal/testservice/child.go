// Package testservice starts real parts for tests, each a child process that ends with the test: the key service, and a Kafka broker.
package testservice

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const stopWithin = 30 * time.Second // a broker without a controller goes by itself after 20

// Buffer collects what a child prints while the test reads it. It is safe for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// String gives what was written until now.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// child is a program that prints one line of JSON when it is ready and stops when its standard input closes.
type child struct {
	Log   *Buffer // its standard error
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}
}

// untilStopped outlives the test's own context, which ends before its clean-up: a program that is killed then leaves its files and its
// own children behind.
func untilStopped(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}

func start(t *testing.T, cmd *exec.Cmd, ready any) *child {
	t.Helper()
	c := &child{Log: &Buffer{}, cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = c.Log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		_ = cmd.Wait()
		close(c.done)
	}()
	t.Cleanup(func() { c.Stop(t) })
	if err := json.Unmarshal([]byte(line), ready); err != nil {
		t.Fatalf("%s is not ready: %v; %s", cmd.Path, err, c.Log)
	}
	return c
}

// Signal sends the child a signal. After SIGSTOP it waits until all its threads have stopped: until then some of them go on.
func (c *child) Signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); s == syscall.SIGSTOP && !c.stopped(t); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the child did not stop")
		}
	}
}

// stopped tells whether no thread runs: the letter behind the name, in parentheses, is T then (proc(5)).
func (c *child) stopped(t *testing.T) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread) // #nosec G304 -- of our own child
		if err != nil || !bytes.Contains(text, []byte(") T ")) {
			return false
		}
	}
	return len(threads) > 0
}

// Kill ends it as a power cut would, and waits until it is gone.
func (c *child) Kill(t *testing.T) {
	t.Helper()
	c.Signal(t, syscall.SIGKILL)
	<-c.done
}

// PID is its process id.
func (c *child) PID() int { return c.cmd.Process.Pid }

// Stop ends the child by closing its input, by force if that does not help. It may be called again.
func (c *child) Stop(t *testing.T) {
	t.Helper()
	_ = c.stdin.Close()
	select {
	case <-c.done:
	case <-time.After(stopWithin):
		_ = c.cmd.Process.Kill()
		<-c.done
		t.Errorf("%s did not stop; %s", c.cmd.Path, c.Log)
	}
}
