// New versions of KEKs. Transit does not rewrap with associated data, so keys pass through the service, many at once. A
// ciphertext names the version that it is under: a rewrap that was cut off goes on where it stopped.

package vault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// KEKNames implements store.KEKs: one for each scope, named like it.
func (s *Store) KEKNames(ctx context.Context) ([]string, error) {
	all, err := s.allScopes(ctx)
	names := make([]string, len(all))
	for i, sc := range all {
		names[i] = sc.name
	}
	slices.Sort(names)
	return names, err
}

// KEKVersion implements store.KEKs.
func (s *Store) KEKVersion(ctx context.Context, name string) (int, error) {
	k, err := s.transit.read(ctx, kekName(name))
	return k.Latest, noAbsence(err, "GET "+s.transit.keyPath(kekName(name)))
}

// AdvanceKEK implements store.KEKs.
func (s *Store) AdvanceKEK(ctx context.Context, name string, version int) error {
	path := s.transit.keyPath(kekName(name)) + "/rotate"
	for {
		latest, err := s.KEKVersion(ctx, name)
		if err != nil || latest >= version {
			return err
		}
		if err := s.client.put(ctx, path, map[string]any{}, nil); err != nil {
			return noAbsence(err, "PUT "+path)
		}
	}
}

// Rewrap implements store.KEKs.
func (s *Store) Rewrap(ctx context.Context, name string, done func(keys int)) error {
	latest, err := s.KEKVersion(ctx, name)
	if err != nil {
		return err
	}
	sc, prefix := s.scopes.get(name), fmt.Sprintf("vault:v%d:", latest)
	for number, more := 1, true; more; number++ {
		var keys int
		if keys, more, err = s.rewrapNext(ctx, sc, number, prefix); err != nil {
			return err
		}
		done(keys)
	}
	return nil
}

// rewrapNext does one page, or the head when there is no such page any more. It takes the turn for so long only.
func (s *Store) rewrapNext(ctx context.Context, sc *scope, number int, prefix string) (keys int, more bool, err error) {
	if err := sc.turn.take(ctx); err != nil {
		return 0, false, err
	}
	defer sc.turn.give()
	h, err := s.readHead(ctx, sc)
	if err != nil {
		return 0, false, err
	}
	if number > h.page {
		return 0, false, s.rewrapHead(ctx, sc, prefix)
	}
	keys, err = s.rewrapPage(ctx, sc, number, prefix)
	return keys, true, err
}

func (s *Store) rewrapPage(ctx context.Context, sc *scope, number int, prefix string) (count int, err error) {
	err = s.retry(ctx, func() error {
		p, err := s.wholePage(ctx, sc, number)
		if err != nil {
			return err
		}
		var old []store.Record
		for _, r := range p.keys {
			if !r.IsDestroyed() && !strings.HasPrefix(string(r.Wrapped), prefix) {
				old = append(old, r)
			}
		}
		if count = len(old); count == 0 {
			return nil
		}
		rewrapped, err := s.rewrapRecords(ctx, sc, old)
		if err != nil {
			return err
		}
		p.keys = p.with(rewrapped)
		return s.putPage(ctx, sc, number, p)
	})
	if err == nil {
		err = s.kv.purge(ctx, pageName(sc.name, number))
	}
	return count, err
}

func (s *Store) rewrapRecords(ctx context.Context, sc *scope, old []store.Record) ([]store.Record, error) {
	keys, err := s.transit.unwrap(ctx, kekName(sc.name), old)
	if err != nil {
		return nil, err
	}
	defer wipeKeys(keys)
	return s.transit.wrapMany(ctx, kekName(sc.name), old, keys)
}

// rewrapHead does the copy of the current key that the head holds.
func (s *Store) rewrapHead(ctx context.Context, sc *scope, prefix string) error {
	err := s.retry(ctx, func() error {
		h, err := s.readHead(ctx, sc)
		if err != nil || h.version == 0 || strings.HasPrefix(string(h.current.Wrapped), prefix) {
			return err
		}
		rewrapped, err := s.rewrapRecords(ctx, sc, []store.Record{h.current})
		if err != nil {
			return err
		}
		h.current = rewrapped[0]
		return s.putHead(ctx, sc, h)
	})
	if err != nil {
		return err
	}
	return s.kv.purge(ctx, headName(sc.name))
}
