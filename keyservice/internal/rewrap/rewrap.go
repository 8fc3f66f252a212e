// Package rewrap gives every KEK a new version and wraps every data key anew, in the background. How far it is stands in
// the store, so that another replica, or the same after a restart, goes on [CL-OPR-011].
package rewrap

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/document"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	documentKind = "service"
	documentKey  = "rewrap"
	look         = 10 * time.Second // between two looks for work
	beat         = 2 * time.Second  // between two signs of life while at work
	abandoned    = 30 * time.Second // without a sign of life, others take over
)

// State says whether there is work.
type State string

// The states; None also when there never was any.
const (
	None    State = "none"
	Running State = "running"
	Done    State = "done"
)

// Progress is the document. KEKs are done in the order of their names: After is the last one done, KEK the one at work,
// which is to have Version.
type Progress struct {
	State    State     `json:"state"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	By       string    `json:"by"`
	Instance string    `json:"instance"`
	Beat     time.Time `json:"beat"`
	KEKs     int       `json:"keks"`
	KEKsDone int       `json:"keks_done"`
	KeysDone int       `json:"keys_done"`
	After    string    `json:"after"`
	KEK      string    `json:"kek"`
	Version  int       `json:"version"`
	Error    string    `json:"error,omitzero"`
}

// Job does the work. Safe for concurrent use.
type Job struct {
	store    store.Store
	instance string
	log      *slog.Logger
	wake     chan struct{}
}

// New makes a job; instance names this replica.
func New(s store.Store, instance string, log *slog.Logger) *Job {
	return &Job{s, instance, log, make(chan struct{}, 1)}
}

// Progress tells how far it is.
func (j *Job) Progress(ctx context.Context) (Progress, error) {
	p, version, err := document.Read[Progress](ctx, j.store, documentKind, documentKey)
	if err == nil && version == 0 {
		p.State = None
	}
	return p, err
}

// Start begins anew, unless it is under way.
func (j *Job) Start(ctx context.Context, by string) (Progress, error) {
	p, _, err := document.Update(ctx, j.store, documentKind, documentKey, func(p *Progress) error {
		if p.State == Running {
			return document.Unchanged
		}
		now := time.Now().UTC()
		*p = Progress{State: Running, Started: now, By: by, Instance: j.instance, Beat: now}
		return nil
	})
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return p, err
}

// Run works when there is something to do, until ctx ends.
func (j *Job) Run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if err := j.work(ctx); err != nil && ctx.Err() == nil {
			j.log.Error("rewrapping stopped; it is tried again", "error", err, "next_try_in", look.String())
			_, _ = j.update(ctx, func(p *Progress) { p.Error = err.Error() })
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-j.wake:
		}
	}
}

// errOthers says that there is nothing to do for this replica.
var errOthers = errors.New("done, or another replica is at work")

// work takes the work over, if there is any that nobody does, and does it to the end.
func (j *Job) work(ctx context.Context) error {
	p, err := j.Progress(ctx)
	if err != nil {
		if errors.Is(err, store.ErrUnavailable) { // others say so already
			return nil
		}
		return err
	}
	if p.State != Running || !j.mine(p) {
		return nil
	}
	if p, err = j.update(ctx, func(p *Progress) { p.Instance, p.Error = j.instance, "" }); err == nil {
		err = j.all(ctx, p)
	}
	if errors.Is(err, errOthers) {
		return nil
	}
	return err
}

// mine tells whether this replica is to work: it began, or who did gives no sign of life. A clock that is off makes two
// replicas work at once, which does no harm.
func (j *Job) mine(p Progress) bool {
	return p.Instance == j.instance || time.Since(p.Beat).Abs() > abandoned
}

// update changes the progress of work that is under way, and gives a sign of life.
func (j *Job) update(ctx context.Context, change func(*Progress)) (Progress, error) {
	p, _, err := document.Update(ctx, j.store, documentKind, documentKey, func(p *Progress) error {
		if p.State != Running {
			return errOthers
		}
		p.Beat = time.Now().UTC()
		change(p)
		return nil
	})
	return p, err
}

func (j *Job) all(ctx context.Context, p Progress) error {
	names, err := j.store.KEKNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name <= p.After {
			continue
		}
		if p, err = j.one(ctx, p, name, len(names)); err != nil {
			return err
		}
	}
	p, err = j.update(ctx, func(p *Progress) { p.State, p.Finished = Done, time.Now().UTC() })
	if err == nil {
		j.log.Info("everything is rewrapped", "keks", p.KEKs, "keys", p.KeysDone)
	}
	return err
}

// one does a KEK. Which version it is to get is written before the version is made: who goes on makes no second one.
func (j *Job) one(ctx context.Context, p Progress, name string, of int) (Progress, error) {
	if p.KEK != name {
		version, err := j.store.KEKVersion(ctx, name)
		if err != nil {
			return p, err
		}
		if p, err = j.update(ctx, func(p *Progress) { p.KEK, p.Version, p.KEKs = name, version+1, of }); err != nil {
			return p, err
		}
	}
	if err := j.store.AdvanceKEK(ctx, name, p.Version); err != nil {
		return p, err
	}
	last := time.Now()
	err := j.store.Rewrap(ctx, name, func(keys int) {
		if keys > 0 || time.Since(last) > beat {
			last = time.Now()
			_, _ = j.update(ctx, func(p *Progress) { p.KeysDone += keys }) // if it fails, the next tells
		}
	})
	if err != nil {
		return p, err
	}
	return j.update(ctx, func(p *Progress) {
		p.After, p.KEK = name, ""
		p.KEKsDone++
	})
}
