// Listing and destroying keys. bbolt writes changed pages elsewhere and leaves the old ones as they were, so after a
// key is taken off, what is free in the file is overwritten.

package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// List implements store.Keys. It looks at every key of the store.
func (s *Store) List(ctx context.Context, scope string, after datakey.ID, limit int) ([]store.Record, error) {
	var all []store.Record
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(keysBucket).ForEach(func(kid, value []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := decodeRecord(datakey.ID(kid), value)
			if err == nil && r.Scope == scope {
				all = append(all, r)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b store.Record) int {
		return cmp.Or(a.Created.Compare(b.Created), bytes.Compare(a.ID[:], b.ID[:]))
	})
	if after != (datakey.ID{}) {
		at := slices.IndexFunc(all, func(r store.Record) bool { return r.ID == after })
		if at < 0 {
			return nil, fmt.Errorf("%w: %s", store.ErrNoKey, after)
		}
		all = all[at+1:]
	}
	return all[:min(limit, len(all))], nil
}

// Destroy implements store.Keys.
func (s *Store) Destroy(ctx context.Context, scope string, ids []datakey.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	err := s.update(func(tx *bbolt.Tx) error {
		current, err := currentOf(tx, scope)
		if err != nil && !errors.Is(err, errNoCurrent) {
			return err
		}
		for _, id := range ids {
			if err := s.destroy(tx, scope, id, current.ID, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.overwriteFree()
}

func (s *Store) destroy(tx *bbolt.Tx, scope string, id, current datakey.ID, at time.Time) error {
	r, err := recordOf(tx, id)
	switch {
	case errors.Is(err, errNoKey), err == nil && r.Scope != scope:
		return fmt.Errorf("%w: %s", store.ErrNoKey, id)
	case err != nil:
		return err
	case id == current:
		return fmt.Errorf("%w: %s", store.ErrCurrent, id)
	case r.IsDestroyed():
		return nil
	}
	r.Wrapped, r.Destroyed = nil, at
	return s.putRecord(tx, r)
}

// Forget implements store.Keys: nothing is held.
func (*Store) Forget() {}

// overwriteFree fills the pages that hold nothing with zeros. Nobody reads meanwhile: a transaction that began earlier
// may still need pages that are free now.
func (s *Store) overwriteFree() (err error) {
	s.using.Lock()
	defer s.using.Unlock()
	f, err := os.OpenFile(s.db.Path(), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("overwrite free pages: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, err := readHeaders(f)
	if err != nil {
		return fmt.Errorf("overwrite free pages: %w", err)
	}
	_, free, err := newLayout(f, m)
	if err != nil {
		return fmt.Errorf("overwrite free pages: %w", err)
	}
	zeros := make([]byte, m.pageSize)
	for _, id := range free {
		if _, err := f.WriteAt(zeros, int64(id*m.pageSize)); err != nil { // #nosec G115 -- within the file
			return fmt.Errorf("overwrite free pages: %w", err)
		}
	}
	return f.Sync()
}
