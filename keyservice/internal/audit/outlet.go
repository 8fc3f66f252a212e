// Sinks beside the file: stdout and syslog. Each has a goroutine and a queue of its own, in the order of the chain, so that one that
// hangs delays the others no longer than the deadline, and gets what it missed when it is back.

package audit

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	outletQueue = 4096 // batches
	retryAfter  = 200 * time.Millisecond
)

// transport takes whole lines. After an error the same lines are given to it again.
type transport interface {
	send(lines []byte) error
	close() error
}

type outlet struct {
	name     string
	required bool
	to       transport
	log      *slog.Logger
	queue    chan delivery
	stop     chan struct{}
	stopped  chan struct{}
	once     sync.Once
}

type delivery struct {
	lines []byte
	done  chan struct{}
}

func openOutlets(o Options, log *slog.Logger) ([]*outlet, error) {
	var all []*outlet
	if o.Stdout != nil {
		all = append(all, newOutlet("stdout", o.RequireStdout || o.File == "", writerTransport{o.Stdout}, log))
	}
	if o.Syslog != nil {
		to, err := o.Syslog.open()
		if err != nil {
			return all, err
		}
		all = append(all, newOutlet("syslog", o.RequireSyslog || o.File == "", to, log))
	}
	return all, nil
}

func newOutlet(name string, required bool, to transport, log *slog.Logger) *outlet {
	o := &outlet{
		name: name, required: required, to: to, log: log,
		queue: make(chan delivery, outletQueue), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go o.run()
	return o
}

// offer gives lines to all and waits, no longer than the deadline, for those that are required.
func offer(outlets []*outlet, lines []byte) error {
	var failures []error
	limit := time.NewTimer(Deadline)
	defer limit.Stop()
	for _, o := range outlets {
		d := delivery{lines, make(chan struct{})}
		if err := o.enqueue(d); err != nil {
			failures = append(failures, err)
			continue
		}
		if !o.required {
			continue
		}
		select {
		case <-d.done:
		case <-limit.C:
			limit.Reset(0)
			failures = append(failures, fmt.Errorf("%s: %w", o.name, errSlow))
		}
	}
	return errors.Join(failures...)
}

// enqueue drops lines that find no place, which leaves a gap in this sink's copy of the chain; that matters only where the sink is required.
func (o *outlet) enqueue(d delivery) error {
	select {
	case o.queue <- d:
		return nil
	default:
	}
	o.log.Error("an audit sink takes nothing; its copy of the audit log has a gap", "sink", o.name)
	if o.required {
		return fmt.Errorf("%s: its queue is full", o.name)
	}
	return nil
}

func (o *outlet) run() {
	defer close(o.stopped)
	for {
		select {
		case d := <-o.queue:
			o.deliver(d)
		case <-o.stop:
			return
		}
	}
}

// deliver repeats until it succeeds: what comes later in the chain must not come first.
func (o *outlet) deliver(d delivery) {
	for failed := false; ; failed = true {
		err := o.to.send(d.lines)
		if err == nil {
			close(d.done)
			return
		}
		if !failed {
			o.log.Error("an audit sink cannot be written; tried again until it can", "sink", o.name, "error", err)
		}
		select {
		case <-time.After(retryAfter):
		case <-o.stop:
			return
		}
	}
}

// drainWithin is how long what is queued may take at the end.
const drainWithin = time.Second

func (o *outlet) close() error {
	for begin := time.Now(); len(o.queue) > 0 && time.Since(begin) < drainWithin; {
		time.Sleep(10 * time.Millisecond)
	}
	o.once.Do(func() { close(o.stop) })
	select {
	case <-o.stopped:
		return o.to.close()
	case <-time.After(drainWithin):
		return fmt.Errorf("audit sink %s hangs", o.name)
	}
}

// writerTransport is stdout: accepted means that the system took the bytes.
type writerTransport struct{ w io.Writer }

func (t writerTransport) send(lines []byte) error {
	_, err := t.w.Write(lines)
	return err
}

func (t writerTransport) close() error { return nil }
