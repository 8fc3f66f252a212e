// The audit log as a file of JSON lines. One goroutine writes; records that wait at the same time share one write and
// one sync.

package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Deadline is the longest that a record may take to reach the disk [CL-API-013].
const Deadline = time.Second

const (
	queueSize = 4096 // records waiting; more wait for a place, within the deadline
	batchSize = 256
	// freshness is how long a successful write proves that the log works, so that frequent health checks do not
	// fill it.
	freshness = 5 * time.Second
)

// sink takes a batch of lines. It returns nil only when they are on disk, and leaves nothing of them behind otherwise.
type sink interface {
	append(lines []byte) error
	close() error
}

// FileLog writes to a file.
type FileLog struct {
	sink    sink
	log     *slog.Logger
	queue   chan entry
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once

	mu     sync.Mutex
	lastOK time.Time // zero after a failure
}

type entry struct {
	lines []byte
	done  chan error // buffered: the writer never waits for a caller that gave up
}

// OpenFile opens the log at path, mode 0600, and creates it when it is missing.
func OpenFile(path string, log *slog.Logger) (*FileLog, error) {
	s, err := openFileSink(path, log)
	if err != nil {
		return nil, err
	}
	return newFileLog(s, log), nil
}

func newFileLog(s sink, log *slog.Logger) *FileLog {
	l := &FileLog{
		sink: s, log: log, queue: make(chan entry, queueSize),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go l.run()
	return l
}

// Write implements Log. After an error the records may still reach the file: then it tells of an answer that was not
// given, never the other way round.
func (l *FileLog) Write(ctx context.Context, records ...Record) error {
	var lines []byte
	for _, r := range records {
		more, err := r.lines()
		if err != nil {
			return errors.Join(ErrUnavailable, err)
		}
		lines = append(lines, more...)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Deadline, errSlow)
	defer cancel()
	err := l.enqueue(ctx, entry{lines, make(chan error, 1)})
	if err != nil {
		l.note(err)
	}
	return err
}

var (
	errSlow   = fmt.Errorf("not on disk within %s", Deadline)
	errClosed = errors.New("it is closed")
)

func (l *FileLog) enqueue(ctx context.Context, e entry) error {
	select {
	case l.queue <- e:
	case <-l.stop:
		return unavailable(errClosed)
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
	select {
	case err := <-e.done:
		return err
	case <-l.stopped:
		return unavailable(errClosed)
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
}

// Check implements Log. When nothing was written lately it writes a line of its own, on the way that all others take.
func (l *FileLog) Check(ctx context.Context) error {
	l.mu.Lock()
	fresh := time.Since(l.lastOK) < freshness
	l.mu.Unlock()
	if fresh {
		return nil
	}
	return l.Write(ctx, Record{Time: time.Now(), Action: "audit-check", Outcome: Allowed})
}

// Close implements Log.
func (l *FileLog) Close() error {
	l.once.Do(func() { close(l.stop) })
	<-l.stopped
	return l.sink.close()
}

func (l *FileLog) run() {
	defer close(l.stopped)
	for {
		select {
		case e := <-l.queue:
			l.commit(l.batch(e))
		case <-l.stop:
			l.drain()
			return
		}
	}
}

// drain writes what was queued before the log was closed.
func (l *FileLog) drain() {
	for {
		select {
		case e := <-l.queue:
			l.commit(l.batch(e))
		default:
			return
		}
	}
}

// batch takes what else is waiting.
func (l *FileLog) batch(first entry) []entry {
	entries := []entry{first}
	for len(entries) < batchSize {
		select {
		case e := <-l.queue:
			entries = append(entries, e)
		default:
			return entries
		}
	}
	return entries
}

func (l *FileLog) commit(entries []entry) {
	var lines []byte
	for _, e := range entries {
		lines = append(lines, e.lines...)
	}
	err := l.sink.append(lines)
	if err != nil {
		l.log.Error("the audit log cannot be written; requests are refused", "error", err)
	}
	l.note(err)
	for _, e := range entries {
		e.done <- unavailable(err)
	}
}

// note remembers whether the log works.
func (l *FileLog) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastOK = time.Time{}
	if err == nil {
		l.lastOK = time.Now()
	}
}

func unavailable(cause error) error {
	if cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}
