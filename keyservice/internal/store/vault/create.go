// Making keys. A key is first put on a page and then made current; both writes compare versions, so of replicas that
// do the same at once one wins and the others see it [CL-API-011]. A key whose maker died in between was never handed
// out: it stays on its page, unused, or, when it is a scope's first, the next caller makes it current.

package vault

import (
	"context"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	maxAttempts      = 16 // to make a key current against others
	maxConflictPause = 3  // pauses grow up to this attempt: others are done in milliseconds
)

// makeFirst makes the scope's first key, or gives the one that another replica made meanwhile. The caller has the turn.
func (s *Store) makeFirst(ctx context.Context, sc *scope, h head) (store.Record, error) {
	return s.makeKey(ctx, sc, h, func(h head, made store.Record, p page) (store.Record, bool) {
		if h.version > 0 {
			return h.current, true
		}
		if last := len(p.keys) - 1; last >= 0 && !p.keys[last].IsDestroyed() { // finish what another began
			return p.keys[last], false
		}
		return made, false
	})
}

// makeNext makes a new current key. The caller has the turn.
func (s *Store) makeNext(ctx context.Context, sc *scope, h head) (store.Record, error) {
	return s.makeKey(ctx, sc, h, func(h head, made store.Record, _ page) (store.Record, bool) {
		return made, h.current.ID == made.ID // true after a write whose answer was lost
	})
}

// makeInstead makes a new current key in place of old, unless another is current. The caller has the turn.
func (s *Store) makeInstead(ctx context.Context, sc *scope, h head, old datakey.ID) (store.Record, error) {
	return s.makeKey(ctx, sc, h, func(h head, made store.Record, _ page) (store.Record, bool) {
		if h.version > 0 && h.current.ID != old {
			return h.current, true
		}
		return made, false
	})
}

// choose says which key is to be current, and whether it is already.
type choose func(h head, made store.Record, last page) (r store.Record, done bool)

func (s *Store) makeKey(ctx context.Context, sc *scope, h head, choose choose) (store.Record, error) {
	made, key, err := s.newRecord(ctx, sc.name, kekName(sc.name))
	if err != nil {
		return store.Record{}, err
	}
	defer key.Wipe()
	for attempt := 0; ; attempt++ {
		current, err := s.putCurrent(ctx, sc, h, made, choose)
		if err == nil {
			s.rememberKey(current, made, key)
			return current, nil
		}
		if reasonOf(err) != Conflict || attempt == maxAttempts || !pause(ctx, min(attempt, maxConflictPause)) {
			return store.Record{}, err
		}
		if h, err = s.readHead(ctx, sc); err != nil {
			return store.Record{}, err
		}
	}
}

// putCurrent is one attempt. Conflict means: look again.
func (s *Store) putCurrent(ctx context.Context, sc *scope, h head, made store.Record, choose choose) (store.Record, error) {
	number := max(h.page, 1)
	p, err := s.readPage(ctx, sc, number)
	if err == nil && p.full() && !p.holds(made.ID) {
		number++
		p, err = s.readPage(ctx, sc, number)
	}
	if err != nil {
		return store.Record{}, err
	}
	current, done := choose(h, made, p)
	if done {
		return current, nil
	}
	if err := s.putOnPage(ctx, sc, number, p, current); err != nil {
		return store.Record{}, err
	}
	return current, s.putHead(ctx, sc, head{h.version, number, current})
}

func (p page) holds(id datakey.ID) bool { return p.indexOf(id) >= 0 }

func (p page) indexOf(id datakey.ID) int {
	return slices.IndexFunc(p.keys, func(r store.Record) bool { return r.ID == id })
}

func (s *Store) putOnPage(ctx context.Context, sc *scope, number int, p page, r store.Record) error {
	if at := p.indexOf(r.ID); at >= 0 {
		if p.keys[at].IsDestroyed() { // by an operator, before it was current
			return &Error{Reason: Conflict, Op: "make a key current", Text: "it was destroyed meanwhile"}
		}
		return nil
	}
	p.keys = append(slices.Clone(p.keys), r)
	return s.putPage(ctx, sc, number, p)
}

// putPage writes a page in place of the version that was read.
func (s *Store) putPage(ctx context.Context, sc *scope, number int, p page) error {
	asked := time.Now()
	version, err := s.kv.write(ctx, pageName(sc.name, number), p.version, p.document(sc.name))
	if err != nil {
		return err
	}
	p.version = version
	s.rememberPage(sc, number, p, asked)
	return nil
}

func (s *Store) putHead(ctx context.Context, sc *scope, h head) error {
	asked := time.Now()
	version, err := s.kv.write(ctx, headName(sc.name), h.version, headDocument{Scope: sc.name, Page: h.page, Current: documentOf(h.current)})
	if err != nil {
		return err
	}
	h.version = version
	sc.setHead(h, asked)
	return nil
}

// newRecord makes a data key here and wraps it in Vault, under a KEK that is looked at each time. The caller wipes the
// key.
func (s *Store) newRecord(ctx context.Context, scope, kek string) (store.Record, *datakey.Key, error) {
	if err := s.transit.ensure(ctx, kek); err != nil {
		return store.Record{}, nil, err
	}
	key := datakey.Generate()
	id, err := key.ID()
	if err == nil {
		made := store.Record{ID: id, Scope: scope, Created: time.Now().UTC().Truncate(time.Millisecond)}
		var wrapped []store.Record
		if wrapped, err = s.transit.wrapMany(ctx, kek, []store.Record{made}, []*datakey.Key{key}); err == nil {
			return wrapped[0], key, nil
		}
	}
	key.Wipe()
	return store.Record{}, nil, err
}

// rememberKey spares the first use of a key that was made here the way to Vault.
func (s *Store) rememberKey(current, made store.Record, key *datakey.Key) {
	if current.ID == made.ID {
		s.keys.put(keyIDOf(made), key.Clone(), time.Now())
	}
}
