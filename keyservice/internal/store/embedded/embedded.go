// Package embedded keeps wrapped data keys in one bbolt file, under a KEK in a Tink keyset file: for a laptop, tests
// and small installations.
//
// Buckets: meta (format, and a value that shows whether KEK and file belong together), keys (kid to record), scopes
// (scope to its current kid), documents (name to version and text, encrypted under the KEK).
package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

var (
	metaBucket      = []byte("meta")
	keysBucket      = []byte("keys")
	scopesBucket    = []byte("scopes")
	documentsBucket = []byte("documents")
	formatName      = []byte("format")
	formatValue     = []byte("cipherlane-keyservice store 1")
	checkName       = []byte("kek-check")
	checkValue      = []byte("this store and this KEK belong together")
)

// Paths says where the two files are.
type Paths struct {
	Keys string // the bbolt file
	KEK  string // the Tink keyset, JSON
}

// Store implements store.Store.
type Store struct {
	db    *bbolt.DB
	paths Paths
	kek   atomic.Pointer[kek]
	using sync.RWMutex // read: a transaction runs; write: pages are overwritten
	keks  sync.Mutex   // held while the keyset is changed
}

func (s *Store) view(do func(*bbolt.Tx) error) error {
	s.using.RLock()
	defer s.using.RUnlock()
	return s.db.View(do)
}

func (s *Store) update(do func(*bbolt.Tx) error) error {
	s.using.RLock()
	defer s.using.RUnlock()
	return s.db.Update(do)
}

var _ store.Store = (*Store)(nil)

// Current implements store.Keys.
func (s *Store) Current(ctx context.Context, scope string) (store.Record, error) {
	found, err := s.Peek(ctx, scope)
	if !errors.Is(err, errNoCurrent) {
		return found, err
	}
	return s.first(scope)
}

// Peek implements store.Keys.
func (s *Store) Peek(ctx context.Context, scope string) (found store.Record, err error) {
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	err = s.view(func(tx *bbolt.Tx) (err error) {
		found, err = currentOf(tx, scope)
		return err
	})
	return found, err
}

// errNoCurrent says that the scope has no key yet.
var errNoCurrent = fmt.Errorf("%w: there is no current one", store.ErrNoKey)

// errHasCurrent ends a transaction that came second, without writing.
var errHasCurrent = errors.New("the scope has a current key")

// first makes the scope's first key, unless another call was faster: bbolt runs one writing transaction at a time, so
// the second look decides [CL-API-011].
func (s *Store) first(scope string) (store.Record, error) {
	made, err := s.newRecord(scope)
	if err != nil {
		return store.Record{}, err
	}
	var found store.Record
	err = s.update(func(tx *bbolt.Tx) (err error) {
		if found, err = currentOf(tx, scope); err == nil {
			return errHasCurrent
		}
		if !errors.Is(err, errNoCurrent) {
			return err
		}
		return s.putCurrent(tx, made)
	})
	switch {
	case errors.Is(err, errHasCurrent):
		return found, nil
	case err != nil:
		return store.Record{}, fmt.Errorf("store the first key of scope %s: %w", scope, err)
	default:
		return made, nil
	}
}

// Rotate implements store.Keys.
func (s *Store) Rotate(ctx context.Context, scope string) (store.Record, error) {
	return s.makeNext(ctx, scope, func(store.Record) bool { return true })
}

// Replace implements store.Keys.
func (s *Store) Replace(ctx context.Context, scope string, old datakey.ID) (store.Record, error) {
	return s.makeNext(ctx, scope, func(current store.Record) bool { return current.ID == old })
}

// makeNext makes a new current key, unless the one that is current when it is stored is to stay.
func (s *Store) makeNext(ctx context.Context, scope string, due func(current store.Record) bool) (store.Record, error) {
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	made, err := s.newRecord(scope)
	if err != nil {
		return store.Record{}, err
	}
	err = s.update(func(tx *bbolt.Tx) error {
		current, err := currentOf(tx, scope)
		if err != nil && !errors.Is(err, errNoCurrent) {
			return err
		}
		if err == nil && !due(current) {
			made = current
			return errHasCurrent
		}
		return s.putCurrent(tx, made)
	})
	if err != nil && !errors.Is(err, errHasCurrent) {
		return store.Record{}, fmt.Errorf("store a new key of scope %s: %w", scope, err)
	}
	return made, nil
}

// newRecord makes and wraps a data key.
func (s *Store) newRecord(scope string) (store.Record, error) {
	key := datakey.Generate()
	defer key.Wipe()
	id, err := key.ID()
	if err != nil {
		return store.Record{}, err
	}
	created := time.Now().UTC().Truncate(time.Millisecond)
	wrapped, err := key.Wrap(s.kek.Load(), associatedData(id, created.UnixMilli(), scope))
	if err != nil {
		return store.Record{}, err
	}
	return store.Record{ID: id, Scope: scope, Created: created, Wrapped: wrapped}, nil
}

// Lookup implements store.Keys.
func (s *Store) Lookup(ctx context.Context, _ string, ids []datakey.ID) (map[datakey.ID]store.Record, error) {
	found := make(map[datakey.ID]store.Record, len(ids))
	err := s.view(func(tx *bbolt.Tx) error {
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := recordOf(tx, id)
			if errors.Is(err, errNoKey) {
				continue
			}
			if err != nil {
				return err
			}
			found[id] = r
		}
		return nil
	})
	return found, err
}

// Unwrap implements store.Keys.
func (s *Store) Unwrap(ctx context.Context, records []store.Record) ([]*datakey.Key, error) {
	keys := make([]*datakey.Key, 0, len(records))
	for _, r := range records {
		key, err := s.unwrap(ctx, r)
		if err != nil {
			for _, k := range keys {
				k.Wipe()
			}
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (s *Store) unwrap(ctx context.Context, r store.Record) (*datakey.Key, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return datakey.Unwrap(s.kek.Load(), r.Wrapped, associatedData(r.ID, r.Created.UnixMilli(), r.Scope), r.ID)
}

// Currents implements store.Keys.
func (s *Store) Currents(ctx context.Context) ([]store.Record, error) {
	var all []store.Record
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(scopesBucket).ForEach(func(scope, _ []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := currentOf(tx, string(scope))
			all = append(all, r)
			return err
		})
	})
	return all, err
}

// Check implements store.Store: the file answers and its KEK fits.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.view(s.checkMeta)
}

// Close implements store.Store.
func (s *Store) Close() error { return s.db.Close() }
