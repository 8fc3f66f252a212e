// Listing and destroying keys. A key is taken off its page, and then every older version of the page and of the scope's
// head, which may hold it too, is destroyed in KV.

package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// List implements store.Keys.
func (s *Store) List(ctx context.Context, name string, after datakey.ID, limit int) ([]store.Record, error) {
	sc := s.scopes.get(name)
	if err := sc.turn.take(ctx); err != nil {
		return nil, err
	}
	defer sc.turn.give()
	h, err := s.readHead(ctx, sc)
	if err != nil {
		return nil, err
	}
	number, err := s.placeOf(ctx, sc, h, after)
	if err != nil {
		return nil, err
	}
	var all []store.Record
	for ; number <= h.page && len(all) < limit; number++ {
		p, err := s.wholePage(ctx, sc, number)
		if err != nil {
			return nil, err
		}
		all = append(all, p.keys[p.indexOf(after)+1:]...) // of pages that do not hold it, all
	}
	return slices.Clone(all[:min(limit, len(all))]), nil
}

// placeOf gives the number of the page that holds a key, 1 for none.
func (s *Store) placeOf(ctx context.Context, sc *scope, h head, id datakey.ID) (int, error) {
	if id == (datakey.ID{}) {
		return 1, nil
	}
	if number, ok := sc.pageOf(id); ok {
		return number, nil
	}
	if h.version > 0 {
		if _, err := s.search(ctx, sc, []datakey.ID{id}, found{}); err != nil {
			return 0, err
		}
	}
	if number, ok := sc.pageOf(id); ok {
		return number, nil
	}
	return 0, fmt.Errorf("%w: %s", store.ErrNoKey, id)
}

// wholePage reads a page that must be there.
func (s *Store) wholePage(ctx context.Context, sc *scope, number int) (page, error) {
	p, err := s.readPage(ctx, sc, number)
	if err == nil && p.version == 0 {
		err = damaged("GET "+pageName(sc.name, number), "the page is gone: restore a snapshot of Vault")
	}
	return p, err
}

// Destroy implements store.Keys.
func (s *Store) Destroy(ctx context.Context, name string, ids []datakey.ID) error {
	sc := s.scopes.get(name)
	if err := sc.turn.take(ctx); err != nil {
		return err
	}
	defer sc.turn.give()
	h, err := s.readHead(ctx, sc)
	if err != nil {
		return err
	}
	pages := map[int][]datakey.ID{}
	for _, id := range ids {
		if h.version > 0 && h.current.ID == id {
			return fmt.Errorf("%w: %s", store.ErrCurrent, id)
		}
		number, err := s.placeOf(ctx, sc, h, id)
		if err != nil {
			return err
		}
		pages[number] = append(pages[number], id)
	}
	defer s.Forget()
	return s.destroy(ctx, sc, pages)
}

func (s *Store) destroy(ctx context.Context, sc *scope, pages map[int][]datakey.ID) error {
	at := time.Now().UTC().Truncate(time.Millisecond)
	for number, ids := range pages {
		var taken []store.Record
		err := s.changePage(ctx, sc, number, func(p page) []store.Record {
			taken = append(taken, p.only(ids)...) // also when an answer was lost and this is the second look
			return p.with(tombstones(taken, at))
		})
		if err == nil {
			err = s.fence(ctx, sc, number, taken)
		}
		if err == nil {
			err = s.kv.purge(ctx, pageName(sc.name, number))
		}
		if err != nil {
			return err
		}
	}
	return s.kv.purge(ctx, headName(sc.name))
}

// only gives those of some keys that the page holds and that are not destroyed.
func (p page) only(ids []datakey.ID) (some []store.Record) {
	for _, id := range ids {
		if at := p.indexOf(id); at >= 0 && !p.keys[at].IsDestroyed() {
			some = append(some, p.keys[at])
		}
	}
	return some
}

// with gives the page's keys, some of them in a new form.
func (p page) with(changed []store.Record) []store.Record {
	keys := slices.Clone(p.keys)
	for _, r := range changed {
		if at := p.indexOf(r.ID); at >= 0 {
			keys[at] = r
		}
	}
	return keys
}

func tombstones(records []store.Record, at time.Time) []store.Record {
	destroyed := slices.Clone(records)
	for i := range destroyed {
		destroyed[i].Wrapped, destroyed[i].Destroyed = nil, at
	}
	return destroyed
}

// changePage writes a page anew, against others who change it too.
func (s *Store) changePage(ctx context.Context, sc *scope, number int, change func(page) []store.Record) error {
	return s.retry(ctx, func() error {
		p, err := s.wholePage(ctx, sc, number)
		if err != nil {
			return err
		}
		p.keys = change(p)
		return s.putPage(ctx, sc, number, p)
	})
}

// retry tries again after a conflict.
func (s *Store) retry(ctx context.Context, try func() error) error {
	for attempt := 0; ; attempt++ {
		err := try()
		if reasonOf(err) != Conflict || attempt == maxAttempts || !pause(ctx, min(attempt, maxConflictPause)) {
			return err
		}
	}
}

// fence writes the head anew: a maker that put one of the keys on the page and was about to make it current loses, looks
// again and sees that it is destroyed. Was the maker faster, the keys get back what was taken.
func (s *Store) fence(ctx context.Context, sc *scope, number int, taken []store.Record) error {
	became := false
	err := s.retry(ctx, func() error {
		h, err := s.readHead(ctx, sc)
		if err != nil {
			return err
		}
		became = slices.ContainsFunc(taken, func(r store.Record) bool { return r.ID == h.current.ID })
		if became {
			return nil
		}
		return s.putHead(ctx, sc, h)
	})
	if err != nil || !became {
		return err
	}
	err = s.changePage(ctx, sc, number, func(p page) []store.Record { return p.with(taken) })
	return errors.Join(store.ErrCurrent, err)
}

// Forget implements store.Keys.
func (s *Store) Forget() {
	s.pages.clear()
	s.keys.clear()
}
