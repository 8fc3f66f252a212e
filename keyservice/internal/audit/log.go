// The writer of the audit log. One goroutine chains and writes; records that wait at the same time share one write and one sync.

package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Deadline is the longest that a record may take to be accepted [CL-API-013].
const Deadline = time.Second

const (
	queueSize = 4096 // records waiting; more wait for a place, within the deadline
	batchSize = 256
	// freshness is how long a successful write proves that the log works, so that frequent health checks do not
	// fill it.
	freshness = 5 * time.Second
)

// Options say where records go. At least one of File, Stdout and Syslog is needed.
type Options struct {
	Name    string        // of the chain: the replica. Empty: the name that the file's chain has, else the host's
	File    string        // path, or empty
	MaxSize int64         // bytes at which the file is rotated, 0 for never
	MaxAge  time.Duration // age at which it is, 0 for never
	Stdout  io.Writer     // nil for none
	Syslog  *Syslog       // nil for none

	// RequireStdout and RequireSyslog say that these must accept a record too. The file, where there is one, always must; without
	// one, all must.
	RequireStdout, RequireSyslog bool
}

// Writer is an open audit log.
type Writer struct {
	file    *file // nil without one
	outlets []*outlet
	log     *slog.Logger
	name    string
	queue   chan entry
	rotates chan chan error
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once

	mu     sync.Mutex
	lastOK time.Time // zero after a failure
	head   Head
}

type entry struct {
	objects [][]byte
	done    chan error // buffered: the writer never waits for a caller that gave up
}

// Open opens everything that o names and begins with a line that says so [CL-AUD-002].
func Open(o Options, log *slog.Logger) (_ *Writer, err error) {
	w := newWriter(log)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open the audit log: %w", err), w.closeSinks())
		}
	}()
	begin := Record{Time: time.Now(), Action: ActionStart, Outcome: Allowed}
	if o.File != "" {
		if w.file, err = openFile(o, log); err != nil {
			return nil, err
		}
		w.head, begin.Cut, begin.PreviousFile = w.file.found.head, w.file.found.cut, w.file.found.previous
	}
	if w.outlets, err = openOutlets(o, log); err != nil {
		return nil, err
	}
	if w.file == nil && len(w.outlets) == 0 {
		return nil, errors.New("it goes nowhere: name a file, stdout or syslog")
	}
	if w.name, err = w.nameOr(o.Name); err != nil {
		return nil, err
	}
	begin.Chain = w.name
	if err := w.begin(begin); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// nameOr keeps a chain's name where none is configured: a container may have another host name at each start.
func (w *Writer) nameOr(configured string) (string, error) {
	switch {
	case configured != "":
		return configured, nil
	case w.file != nil && w.file.found.chain != "":
		return w.file.found.chain, nil
	}
	name, err := os.Hostname()
	if err == nil && name == "" {
		err = errors.New("this host has no name: set audit.name")
	}
	return name, err
}

func newWriter(log *slog.Logger) *Writer {
	return &Writer{
		log: log, queue: make(chan entry, queueSize), rotates: make(chan chan error),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

func (w *Writer) begin(r Record) error {
	objects, err := r.objects()
	if err != nil {
		return err
	}
	err = w.accept(objects)
	w.lastOK = time.Time{} // it says nothing of the next write
	return err
}

// Write implements Log. After an error the records may still reach a sink: then it tells of an answer that was not
// given, never the other way round.
func (w *Writer) Write(ctx context.Context, records ...Record) error {
	var objects [][]byte
	for _, r := range records {
		more, err := r.objects()
		if err != nil {
			return errors.Join(ErrUnavailable, err)
		}
		objects = append(objects, more...)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Deadline, errSlow)
	defer cancel()
	err := w.enqueue(ctx, entry{objects, make(chan error, 1)})
	if err != nil {
		w.note(err)
	}
	return err
}

var (
	errSlow   = fmt.Errorf("not accepted within %s", Deadline)
	errClosed = errors.New("it is closed")
)

func (w *Writer) enqueue(ctx context.Context, e entry) error {
	select {
	case w.queue <- e:
	case <-w.stop:
		return unavailable(errClosed)
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
	select {
	case err := <-e.done:
		return err
	case <-w.stopped:
		return unavailable(errClosed)
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
}

// Check implements Log. When nothing was written lately it writes a line of its own, on the way that all others take.
func (w *Writer) Check(ctx context.Context) error {
	w.mu.Lock()
	fresh := time.Since(w.lastOK) < freshness
	w.mu.Unlock()
	if fresh {
		return nil
	}
	return w.Write(ctx, Record{Time: time.Now(), Action: ActionCheck, Outcome: Allowed})
}

// Head gives the last line that was accepted: an anchor to keep elsewhere.
func (w *Writer) Head() Head {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head
}

// Close implements Log.
func (w *Writer) Close() error {
	w.once.Do(func() { close(w.stop) })
	<-w.stopped
	return w.closeSinks()
}

func (w *Writer) closeSinks() error {
	var failures []error
	for _, o := range w.outlets {
		failures = append(failures, o.close())
	}
	if w.file != nil {
		failures = append(failures, w.file.close())
	}
	return errors.Join(failures...)
}

func (w *Writer) run() {
	defer close(w.stopped)
	for {
		select {
		case e := <-w.queue:
			w.rotateWhenDue()
			w.commit(w.batch(e))
		case answer := <-w.rotates:
			answer <- w.rotate()
		case <-w.stop:
			w.drain()
			return
		}
	}
}

// drain writes what was queued before the log was closed.
func (w *Writer) drain() {
	for {
		select {
		case e := <-w.queue:
			w.commit(w.batch(e))
		default:
			return
		}
	}
}

// batch takes what else is waiting.
func (w *Writer) batch(first entry) []entry {
	entries := []entry{first}
	for len(entries) < batchSize {
		select {
		case e := <-w.queue:
			entries = append(entries, e)
		default:
			return entries
		}
	}
	return entries
}

func (w *Writer) commit(entries []entry) {
	var objects [][]byte
	for _, e := range entries {
		objects = append(objects, e.objects...)
	}
	err := w.accept(objects)
	if err != nil {
		w.log.Error("the audit log cannot be written; requests are refused", "error", err)
	}
	for _, e := range entries {
		e.done <- unavailable(err)
	}
}

// accept chains objects and gives them to all sinks [CL-AUD-005]. The chain goes on from what the file accepted; what it did not
// accept never was.
func (w *Writer) accept(objects [][]byte) error {
	var text []byte
	next := w.Head()
	for _, object := range objects {
		text, next = next.link(text, object)
	}
	var err error
	if w.file != nil {
		err = w.file.append(text)
	}
	if err == nil {
		w.advance(next)
		err = offer(w.outlets, text)
	}
	w.note(err)
	return err
}

func (w *Writer) advance(next Head) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head = next
}

// note remembers whether the log works.
func (w *Writer) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastOK = time.Time{}
	if err == nil {
		w.lastOK = time.Now()
	}
}

func unavailable(cause error) error {
	if cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}
