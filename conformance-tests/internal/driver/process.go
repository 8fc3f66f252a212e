package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

const (
	helloTimeout  = 60 * time.Second
	answerTimeout = 120 * time.Second
	endTimeout    = 20 * time.Second
)

// Process is a driver that runs. Used by one goroutine at a time.
type Process struct {
	Hello

	command *exec.Cmd
	stdin   io.WriteCloser
	lines   chan []byte
	next    int
	broken  error
	ended   sync.Once
}

// Start starts a driver, with a clock that can be set or, where this is nil, with that of the machine. What it writes to standard
// error goes to log.
func Start(command []string, log *os.File, clock *Clock) (*Process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = log
	if clock != nil {
		cmd.Env = clock.environment()
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start driver: %w", err)
	}
	p := &Process{command: cmd, stdin: stdin, lines: make(chan []byte)}
	go p.read(stdout)
	if err := p.hello(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Process) read(stdout io.Reader) {
	defer close(p.lines)
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, MaxLine)
	for scanner.Scan() {
		p.lines <- slices.Clone(scanner.Bytes())
	}
}

func (p *Process) hello() error {
	if err := p.call(Request{Op: OpHello}, &p.Hello, helloTimeout); err != nil {
		return fmt.Errorf("driver's hello: %w", err)
	}
	if p.Protocol != 1 {
		return fmt.Errorf("driver speaks protocol %d, the runner 1", p.Protocol)
	}
	return nil
}

// Knows says whether the driver has an operation or a feature.
func (p *Process) Knows(names ...string) bool {
	for _, name := range names {
		if !slices.Contains(p.Operations, name) && !slices.Contains(p.Features, name) {
			return false
		}
	}
	return true
}

// PID is the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Call sends a request and reads its answer into ok (which may be nil). The error is *Error when the driver answered with one;
// after any other the driver is of no more use.
func (p *Process) Call(request Request, ok any) error { return p.call(request, ok, answerTimeout) }

// CallWithin is Call for what takes longer than any other operation.
func (p *Process) CallWithin(request Request, ok any, timeout time.Duration) error {
	return p.call(request, ok, timeout)
}

func (p *Process) call(request Request, ok any, timeout time.Duration) error {
	if p.broken != nil {
		return p.broken
	}
	answer, err := p.exchange(request, timeout)
	if err == nil && answer.Error != nil {
		return answer.Error
	}
	if err == nil && ok != nil {
		err = json.Unmarshal(answer.OK, ok)
	}
	if err != nil {
		p.broken = fmt.Errorf("driver %s, operation %s: %w", p.Name, request.Op, err)
	}
	return p.broken
}

func (p *Process) exchange(request Request, timeout time.Duration) (*Answer, error) {
	p.next++
	request.ID = p.next
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	select {
	case line, open := <-p.lines:
		return parseAnswer(line, open, p.next)
	case <-time.After(timeout):
		return nil, fmt.Errorf("no answer within %s", timeout)
	}
}

func parseAnswer(line []byte, open bool, id int) (*Answer, error) {
	if !open {
		return nil, errors.New("the driver ended; its log says why")
	}
	answer := &Answer{}
	if err := json.Unmarshal(line, answer); err != nil {
		return nil, fmt.Errorf("an answer that is not JSON: %.100q", line)
	}
	if answer.ID != id {
		return nil, fmt.Errorf("an answer to request %d, expected one to %d", answer.ID, id)
	}
	return answer, nil
}

// Close ends the driver, and kills it if it does not end by itself. May be called again.
func (p *Process) Close() {
	p.ended.Do(func() {
		_ = p.stdin.Close()
		go func() {
			for range p.lines { // so that a driver that still writes can end
			}
		}()
		timer := time.AfterFunc(endTimeout, func() { _ = p.command.Process.Kill() })
		_ = p.command.Wait()
		timer.Stop()
	})
}
