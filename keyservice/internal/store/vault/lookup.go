// From key ids to records: memory first, then the pages that are known to hold them, then a search of the scope from its
// newest page on, and last a search of the other scopes.

package vault

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	maxPagesHeld = 64 // some 40 MB of wrapped keys
	// searchPause is the least time between two searches of all scopes: kids that nobody knows must not cost Vault one
	// request for each scope, each time.
	searchPause = 10 * time.Second
)

type pageID struct {
	scope  string
	number int
}

type found = map[datakey.ID]store.Record

// lookup finds keys in one scope. What it gives back as missing was not there after the call began.
func (s *Store) lookup(ctx context.Context, sc *scope, ids []datakey.ID, into found) (missing []datakey.ID, err error) {
	asked := time.Now()
	if missing = s.remembered(sc, ids, into); len(missing) == 0 {
		return nil, nil
	}
	if err := sc.turn.take(ctx); err != nil {
		return nil, err
	}
	defer sc.turn.give()
	missing = s.remembered(sc, missing, into)
	if missing, err = s.readAgain(ctx, sc, missing, into); err != nil || len(missing) == 0 {
		return nil, err
	}
	if sc.searchedSince(asked) {
		return missing, nil
	}
	return s.search(ctx, sc, missing, into)
}

// remembered takes what is in memory and gives the rest.
func (s *Store) remembered(sc *scope, ids []datakey.ID, into found) []datakey.ID {
	var missing []datakey.ID
	for _, id := range ids {
		number, ok := sc.pageOf(id)
		if ok {
			ok = s.pages.with(pageID{sc.name, number}, func(keys found, _ time.Time) {
				if r, there := keys[id]; there {
					into[id] = r
				}
			})
		}
		if _, got := into[id]; !ok || !got {
			missing = append(missing, id)
		}
	}
	return missing
}

// readAgain reads the pages that are known to hold some of the ids.
func (s *Store) readAgain(ctx context.Context, sc *scope, ids []datakey.ID, into found) ([]datakey.ID, error) {
	needed := map[int]bool{}
	for _, id := range ids {
		if number, ok := sc.pageOf(id); ok {
			needed[number] = true
		}
	}
	missing := ids
	for _, number := range slices.Sorted(maps.Keys(needed)) {
		p, err := s.readPage(ctx, sc, number)
		if err != nil {
			return nil, err
		}
		missing = p.take(missing, into)
	}
	return missing, nil
}

// search reads the pages whose keys are not known yet, newest first.
func (s *Store) search(ctx context.Context, sc *scope, missing []datakey.ID, into found) ([]datakey.ID, error) {
	began := time.Now()
	h, err := s.readHead(ctx, sc)
	if err != nil {
		return nil, err
	}
	for number := h.page; number >= 1; number-- {
		if number < h.page && sc.isComplete(number) {
			continue
		}
		p, err := s.readPage(ctx, sc, number)
		if err == nil && p.version == 0 {
			err = damaged("GET "+pageName(sc.name, number), "the page is gone: restore a snapshot of Vault")
		}
		if err != nil {
			return nil, err
		}
		if missing = p.take(missing, into); len(missing) == 0 {
			return nil, nil
		}
	}
	sc.setSearched(began)
	return missing, nil
}

// take moves the keys of a page that are missing, and gives the rest.
func (p page) take(missing []datakey.ID, into found) []datakey.ID {
	keys := p.index()
	for _, id := range missing {
		if r, ok := keys[id]; ok {
			into[id] = r
		}
	}
	return without(missing, into)
}

func (p page) index() found {
	keys := make(found, len(p.keys))
	for _, r := range p.keys {
		keys[r.ID] = r
	}
	return keys
}

// without gives the ids that are not found.
func without(ids []datakey.ID, got found) []datakey.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id datakey.ID) bool {
		_, ok := got[id]
		return ok
	})
}

// lookupElsewhere finds keys of other scopes: records that were moved. It only decides which refusal they get, so what
// it knows may be as old as searchPause.
func (s *Store) lookupElsewhere(ctx context.Context, not string, missing []datakey.ID, into found) error {
	if missing = s.lookupHolders(ctx, not, missing, into); len(missing) == 0 {
		return nil
	}
	if err := s.everywhere.take(ctx); err != nil {
		return err
	}
	defer s.everywhere.give()
	if time.Since(s.searched) < searchPause {
		return nil
	}
	began := time.Now()
	all, err := s.allScopes(ctx)
	if err != nil {
		return err
	}
	for _, sc := range all {
		if sc.name != not && len(missing) > 0 {
			if missing, err = s.lookup(ctx, sc, missing, into); err != nil {
				return err
			}
		}
	}
	if len(missing) > 0 {
		s.searched = began
	}
	return nil
}

// lookupHolders finds keys in the scopes that are known to hold them. A failure leaves them to the search.
func (s *Store) lookupHolders(ctx context.Context, not string, missing []datakey.ID, into found) []datakey.ID {
	for _, id := range missing {
		if sc := s.scopes.holder(id, not); sc != nil {
			if _, err := s.lookup(ctx, sc, []datakey.ID{id}, into); err != nil {
				return missing
			}
		}
	}
	return without(missing, into)
}

// allScopes gives every scope that Vault has. The names come from Vault, so each is checked against its document.
func (s *Store) allScopes(ctx context.Context) ([]*scope, error) {
	names, err := s.kv.list(ctx, scopesDir)
	if err != nil {
		return nil, err
	}
	all := make([]*scope, 0, len(names))
	for _, name := range names {
		sc := s.scopes.at(name)
		if sc == nil {
			if sc, err = s.discover(ctx, name); err != nil {
				return nil, err
			}
		}
		all = append(all, sc)
	}
	return all, nil
}

// discover reads the head of a scope of which only the name in Vault is known.
func (s *Store) discover(ctx context.Context, name string) (*scope, error) {
	asked := time.Now()
	var d headDocument
	version, err := s.kv.read(ctx, scopesDir+"/"+name, &d)
	if err != nil {
		return nil, noAbsence(err, "GET "+scopesDir+"/"+name)
	}
	if err := checkScope(d.Scope, name); err != nil {
		return nil, damaged("GET "+scopesDir+"/"+name, "%v", err)
	}
	h, err := d.head(version, d.Scope)
	if err != nil {
		return nil, damaged("GET "+scopesDir+"/"+name, "%v", err)
	}
	sc := s.scopes.get(d.Scope)
	sc.setHead(h, asked)
	return sc, nil
}

// readHead asks Vault for a scope's head; version 0 means that the scope has none, in a store that is otherwise there.
func (s *Store) readHead(ctx context.Context, sc *scope) (head, error) {
	asked, name := time.Now(), headName(sc.name)
	var d headDocument
	version, err := s.kv.read(ctx, name, &d)
	if errors.Is(err, errAbsent) {
		return head{}, s.explainAbsence(ctx, sc)
	}
	if err != nil {
		return head{}, err
	}
	h, err := d.head(version, sc.name)
	if err != nil {
		return head{}, damaged("GET "+name, "%v", err)
	}
	return sc.setHead(h, asked), nil
}

// explainAbsence tells a scope without keys from a store that was emptied: "no such key" is never said of that.
func (s *Store) explainAbsence(ctx context.Context, sc *scope) error {
	if known, _ := sc.headSince(time.Time{}); known.version > 0 {
		return damaged("GET "+headName(sc.name), "the scope's keys were here before and are gone: restore a snapshot of Vault")
	}
	_, err := s.readMeta(ctx)
	return err
}

// readPage asks Vault for a page; version 0 means that there is none.
func (s *Store) readPage(ctx context.Context, sc *scope, number int) (page, error) {
	asked, name := time.Now(), pageName(sc.name, number)
	var d pageDocument
	version, err := s.kv.read(ctx, name, &d)
	if errors.Is(err, errAbsent) {
		return page{}, nil
	}
	if err != nil {
		return page{}, err
	}
	p, err := d.page(version, sc.name)
	if err != nil {
		return page{}, damaged("GET "+name, "%v", err)
	}
	s.rememberPage(sc, number, p, asked)
	return p, nil
}

func (s *Store) rememberPage(sc *scope, number int, p page, asked time.Time) {
	sc.setPage(number, p)
	s.pages.put(pageID{sc.name, number}, p.index(), asked)
	s.scopes.trim(maxKnown)
}
