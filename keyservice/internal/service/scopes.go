// Listing scopes and keys: what is known of a key, never the key.

package service

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/usage"
)

// Key is what is known of a data key.
type Key struct {
	store.Record
	usage.Counts

	Current bool
}

// Scope is a scope with its current key and that key's limits.
type Scope struct {
	Key

	Rotation policy.Rotation
}

// Scopes lists the scopes in the order of their names; next is empty at the end.
//
// Errors: not-authorized, key-service-unavailable, internal, audit-unavailable.
func (s *Service) Scopes(ctx context.Context, call Call, page Page) (scopes []Scope, next string, err error) {
	scopes, err = inspect(ctx, s, call, call.Record(policy.ActionAdmin), func(ctx context.Context) ([]Scope, error) {
		all, err := s.Store.Currents(ctx)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b store.Record) int { return cmp.Compare(a.Scope, b.Scope) })
		all, next = lease.Page(all, func(r store.Record) string { return r.Scope }, page.After, page.Limit)
		for _, r := range all {
			one, err := s.scope(ctx, r.Scope)
			if err != nil {
				return nil, err
			}
			scopes = append(scopes, one)
		}
		return scopes, nil
	})
	return scopes, next, err
}

// scope describes a scope that has a key, as it is now: a list of all may be older.
func (s *Service) scope(ctx context.Context, name string) (Scope, error) {
	current, err := s.currentOf(ctx, name)
	if err != nil {
		return Scope{}, err
	}
	keys, err := s.described(ctx, name, current.ID, []store.Record{current})
	if err != nil {
		return Scope{}, err
	}
	return Scope{keys[0], s.Policies.Current().Rotation(name)}, nil
}

// described adds what was counted.
func (s *Service) described(ctx context.Context, scope string, current datakey.ID, records []store.Record) ([]Key, error) {
	ids := make([]datakey.ID, len(records))
	for i, r := range records {
		ids[i] = r.ID
	}
	counts, err := s.Usage.Of(ctx, scope, ids)
	if err != nil {
		return nil, err
	}
	keys := make([]Key, len(records))
	for i, r := range records {
		keys[i] = Key{Record: r, Counts: counts[r.ID], Current: r.ID == current}
	}
	return keys, nil
}

// Keys lists the keys of a scope in the order in which they were made, those behind after (the zero id: from the first
// on). more tells whether others follow.
//
// Errors: not-authorized, topic-unknown, not-found, key-service-unavailable, internal, audit-unavailable.
func (s *Service) Keys(ctx context.Context, call Call, scope string, after datakey.ID, limit int) (keys []Key, more bool, err error) {
	record := call.Record(policy.ActionAdmin)
	record.Scope = scope
	keys, err = inspect(ctx, s, call, record, func(ctx context.Context) ([]Key, error) {
		current, err := s.currentOf(ctx, scope)
		if err != nil {
			return nil, err
		}
		records, err := s.Store.List(ctx, scope, after, limit+1)
		if err != nil {
			return nil, err
		}
		more = len(records) > limit
		return s.described(ctx, scope, current.ID, records[:min(limit, len(records))])
	})
	return keys, more, err
}

// currentOf gives the current key of a scope that has one.
func (s *Service) currentOf(ctx context.Context, scope string) (store.Record, error) {
	current, err := s.Store.Peek(ctx, scope)
	if errors.Is(err, store.ErrNoKey) {
		return store.Record{}, refusal.New(refusal.TopicUnknown, "scope %q has no keys", scope)
	}
	return current, err
}
