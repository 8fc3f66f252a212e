// What is known of each scope: where its keys are, and which is current.

package vault

import (
	"context"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

// maxKnown bounds the keys whose page is remembered, over all scopes: some 60 MB.
const maxKnown = 1_000_000

// turn lets one caller at a time ask Vault about something: the others find the answer in memory then.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn or the end of ctx.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &Error{Reason: TimedOut, Op: "wait for another call to Vault", Cause: ctx.Err()}
	}
}

func (t turn) give() { <-t }

// scope is what is known of one. where only grows: a key stays in its page.
type scope struct {
	name string
	turn turn

	mu       sync.Mutex
	used     time.Time
	head     head
	headRead time.Time // when Vault was asked for head
	searched time.Time // when a search began that went to its end
	where    map[datakey.ID]int
	complete map[int]bool // full pages that are in where
}

// headSince gives the head if it was asked for at or after a time.
func (s *scope) headSince(since time.Time) (head, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head, !s.headRead.IsZero() && !s.headRead.Before(since)
}

// setHead remembers a head. A node that lags behind must not bring an older one back.
func (s *scope) setHead(h head, asked time.Time) head {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.version >= s.head.version {
		s.head = h
	}
	if asked.After(s.headRead) {
		s.headRead = asked
	}
	return s.head
}

// setPage remembers which keys a page holds.
func (s *scope) setPage(number int, p page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range p.keys {
		s.where[r.ID] = number
	}
	if p.full() {
		s.complete[number] = true
	}
}

// pageOf tells the page of a key.
func (s *scope) pageOf(id datakey.ID) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok = s.where[id]
	return number, ok
}

func (s *scope) isComplete(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete[number]
}

func (s *scope) searchedSince(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.searched.Before(since)
}

func (s *scope) setSearched(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.searched = began
}

// scopes holds all that are known, by their names in Vault. Safe for concurrent use.
type scopes struct {
	mu  sync.Mutex
	all map[string]*scope
}

func newScopes() *scopes { return &scopes{all: map[string]*scope{}} }

// get gives a scope, new when it is not known.
func (s *scopes) get(name string) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[nameOf(name)]
	if found == nil {
		found = &scope{name: name, turn: newTurn(), where: map[datakey.ID]int{}, complete: map[int]bool{}}
		s.all[nameOf(name)] = found
	}
	found.mu.Lock()
	found.used = time.Now()
	found.mu.Unlock()
	return found
}

// at gives a scope by its name in Vault, or nil.
func (s *scopes) at(nameInVault string) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[nameInVault]
}

// holder gives the scope other than not that is known to hold a key, or nil.
func (s *scopes) holder(id datakey.ID, not string) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.name == not {
			continue
		}
		if _, ok := one.pageOf(id); ok {
			return one
		}
	}
	return nil
}

// trim forgets the scopes that were not used for longest until at most limit keys are remembered. A forgotten scope is
// read again when it is asked for.
func (s *scopes) trim(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, one := range s.all {
		total += one.size()
	}
	for total > limit && len(s.all) > 1 {
		oldest := s.oldest()
		total -= oldest.size()
		delete(s.all, nameOf(oldest.name))
	}
}

func (s *scopes) oldest() *scope {
	var oldest *scope
	for _, one := range s.all {
		if oldest == nil || one.lastUsed().Before(oldest.lastUsed()) {
			oldest = one
		}
	}
	return oldest
}

func (s *scope) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.where) + 1
}

func (s *scope) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
