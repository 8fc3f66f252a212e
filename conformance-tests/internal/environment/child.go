package environment

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = 180 * time.Second
	stopTimeout  = 20 * time.Second
)

// child is a process that ends with the runner.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
}

// launch starts a program whose standard error goes to the end of a file.
func launch(log, name string, args ...string) (*child, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(name, args...)
	cmd.Stderr = file
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd, stdin, bufio.NewReader(stdout)}, nil
}

// start starts a program that says in one line of JSON when it is ready.
func start(log string, ready any, name string, args ...string) (*child, error) {
	c, err := launch(log, name, args...)
	if err != nil {
		return nil, err
	}
	if err := c.read(ready); err != nil {
		c.stop()
		return nil, fmt.Errorf("%s did not get ready: %w; see %s", name, err, log)
	}
	return c, nil
}

// read reads the next line of JSON that the program prints.
func (c *child) read(value any) error {
	lines, failures := make(chan string, 1), make(chan error, 1)
	go func() {
		line, err := c.stdout.ReadString('\n')
		if err != nil {
			failures <- err
			return
		}
		lines <- strings.TrimSpace(line)
	}()
	select {
	case line := <-lines:
		return json.Unmarshal([]byte(line), value)
	case err := <-failures:
		return err
	case <-time.After(startTimeout):
		return errors.New("time is over")
	}
}

func (c *child) pid() int { return c.command.Process.Pid }

func (c *child) signal(signal syscall.Signal) error { return c.command.Process.Signal(signal) }

// kill ends it as a crash would.
func (c *child) kill() error {
	err := c.signal(syscall.SIGKILL)
	_ = c.command.Wait()
	return err
}

func (c *child) stop() {
	_ = c.stdin.Close()
	timer := time.AfterFunc(stopTimeout, func() { _ = c.command.Process.Kill() })
	_ = c.command.Wait()
	timer.Stop()
}

// freePort is one that nobody listens on.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
