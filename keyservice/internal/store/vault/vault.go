// Package vault keeps data keys in HashiCorp Vault or OpenBao: wrapped by the transit engine, one KEK for each scope,
// and stored in a KV engine of version 2. Data keys are made here; a KEK never leaves Vault.
//
// What stands where, and why, is in spec/decisions/0006-vault-layout.md. What was read is kept in memory for at most
// Options.Cache.TTL, unwrapped keys too: for so long a key that was destroyed in Vault may still be given out by this
// process. The current key of a scope is believed for at most a second.
package vault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// currentTTL is how long a scope's current key is believed, at most: a rotation by another replica shows within it.
const currentTTL = time.Second

// Store implements store.Store.
type Store struct {
	client    *client
	kv        *kv
	transit   *transit
	ttl       time.Duration
	revoke    bool // whether the token was had for this process alone
	transport *endpoints

	scopes *scopes
	pages  *expiring[pageID, found]
	keys   *expiring[keyID, *datakey.Key]

	everywhere turn // held while all scopes are searched; guards searched
	searched   time.Time

	stop    context.CancelFunc
	sweeper sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// keyID names an unwrapped key by all that Vault vouched for when it was unwrapped.
type keyID struct {
	id      datakey.ID
	scope   string
	created int64
}

func keyIDOf(r store.Record) keyID { return keyID{r.ID, r.Scope, r.Created.UnixMilli()} }

// sweep wipes keys at their end, also when nobody asks for them any more.
func (s *Store) sweep(ctx context.Context) {
	ticker := time.NewTicker(max(s.ttl/8, 100*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.pages.sweep()
			s.keys.sweep()
		}
	}
}

// Current implements store.Keys.
func (s *Store) Current(ctx context.Context, name string) (store.Record, error) {
	sc := s.scopes.get(name)
	believed := time.Now().Add(-min(currentTTL, s.ttl))
	if h, ok := sc.headSince(believed); ok && h.version > 0 {
		return h.current, nil
	}
	if err := sc.turn.take(ctx); err != nil {
		return store.Record{}, err
	}
	defer sc.turn.give()
	if h, ok := sc.headSince(believed); ok && h.version > 0 {
		return h.current, nil
	}
	h, err := s.readHead(ctx, sc)
	switch {
	case err != nil:
		return store.Record{}, err
	case h.version > 0:
		return h.current, nil
	default:
		return s.makeFirst(ctx, sc, h)
	}
}

// Peek implements store.Keys.
func (s *Store) Peek(ctx context.Context, name string) (store.Record, error) {
	sc := s.scopes.get(name)
	h, ok := sc.headSince(time.Now().Add(-min(currentTTL, s.ttl)))
	if !ok || h.version == 0 {
		var err error
		if h, err = s.readHead(ctx, sc); err != nil {
			return store.Record{}, err
		}
	}
	if h.version == 0 {
		return store.Record{}, fmt.Errorf("%w: scope %s has none", store.ErrNoKey, name)
	}
	return h.current, nil
}

// Rotate implements store.Keys.
func (s *Store) Rotate(ctx context.Context, name string) (store.Record, error) {
	sc := s.scopes.get(name)
	if err := sc.turn.take(ctx); err != nil {
		return store.Record{}, err
	}
	defer sc.turn.give()
	h, err := s.readHead(ctx, sc)
	if err != nil {
		return store.Record{}, err
	}
	return s.makeNext(ctx, sc, h)
}

// Replace implements store.Keys.
func (s *Store) Replace(ctx context.Context, name string, old datakey.ID) (store.Record, error) {
	sc := s.scopes.get(name)
	if err := sc.turn.take(ctx); err != nil {
		return store.Record{}, err
	}
	defer sc.turn.give()
	h, err := s.readHead(ctx, sc)
	switch {
	case err != nil:
		return store.Record{}, err
	case h.version == 0:
		return s.makeFirst(ctx, sc, h)
	case h.current.ID != old:
		return h.current, nil
	default:
		return s.makeInstead(ctx, sc, h, old)
	}
}

// Lookup implements store.Keys.
func (s *Store) Lookup(ctx context.Context, scope string, ids []datakey.ID) (map[datakey.ID]store.Record, error) {
	into := make(found, len(ids))
	missing, err := s.lookup(ctx, s.scopes.get(scope), ids, into)
	if err == nil && len(missing) > 0 {
		err = s.lookupElsewhere(ctx, scope, missing, into)
	}
	if err != nil {
		return nil, err
	}
	return into, nil
}

// Unwrap implements store.Keys.
func (s *Store) Unwrap(ctx context.Context, records []store.Record) ([]*datakey.Key, error) {
	keys := make([]*datakey.Key, len(records))
	cold := map[string][]int{}
	for i, r := range records {
		if keys[i] = s.held(r); keys[i] == nil {
			cold[r.Scope] = append(cold[r.Scope], i)
		}
	}
	for scope, places := range cold {
		if err := s.unwrapScope(ctx, s.scopes.get(scope), records, places, keys); err != nil {
			wipeKeys(slices.DeleteFunc(keys, func(k *datakey.Key) bool { return k == nil }))
			return nil, err
		}
	}
	return keys, nil
}

// held gives a copy of an unwrapped key, or nil.
func (s *Store) held(r store.Record) (copied *datakey.Key) {
	s.keys.with(keyIDOf(r), func(k *datakey.Key, _ time.Time) { copied = k.Clone() })
	return copied
}

// unwrapScope unwraps the records at some places, all of one scope, in one request as far as they fit. Callers who want
// the same wait for their turn and find the keys held.
func (s *Store) unwrapScope(ctx context.Context, sc *scope, records []store.Record, places []int, keys []*datakey.Key) error {
	if err := sc.turn.take(ctx); err != nil {
		return err
	}
	defer sc.turn.give()
	var cold []store.Record
	for _, i := range places {
		if keys[i] = s.held(records[i]); keys[i] == nil {
			cold = append(cold, records[i])
		}
	}
	asked := time.Now()
	unwrapped, err := s.transit.unwrap(ctx, kekName(sc.name), cold)
	if err != nil {
		return err
	}
	for _, i := range places {
		if keys[i] == nil {
			keys[i], unwrapped = unwrapped[0], unwrapped[1:]
			s.keys.put(keyIDOf(records[i]), keys[i].Clone(), asked)
		}
	}
	return nil
}

// Currents implements store.Keys. What is not older than the cache's time is taken from memory.
func (s *Store) Currents(ctx context.Context) ([]store.Record, error) {
	believed := time.Now().Add(-s.ttl)
	all, err := s.allScopes(ctx)
	if err != nil {
		return nil, err
	}
	currents := make([]store.Record, 0, len(all))
	for _, sc := range all {
		h, ok := sc.headSince(believed)
		if !ok {
			if h, err = s.readHead(ctx, sc); err != nil {
				return nil, err
			}
		}
		currents = append(currents, h.current)
	}
	return currents, nil
}

// Close implements store.Store: it wipes what is held and gives the token back, unless it came from a file.
func (s *Store) Close() error {
	s.stop()
	s.sweeper.Wait()
	s.client.session.close(s.revoke)
	s.keys.clear()
	s.pages.clear()
	s.transport.close()
	return nil
}
