// Destroying keys, in two steps: the first says what becomes unreadable and gives a token, the second destroys.

package service

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/document"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/usage"
)

// Limits of a destruction (spec/limits.md).
const (
	ConfirmWithin  = 5 * time.Minute
	maxWaiting     = 100
	maxListed      = 1000 // keys that an answer lists
	destroyKind    = "service"
	destroyKey     = "destructions"
	digestLabel    = "cipherlane destruction v1"
	listAtOnce     = 2048
	maxDestruction = 200_000 // keys in one call
)

// Target says which keys are to be destroyed: some, or all of the scope.
type Target struct {
	Scope string
	Kids  []datakey.ID
	All   bool
}

// Plan is what would become unreadable.
type Plan struct {
	Scope   string
	Keys    []Key // oldest first, at most 1,000
	Count   int   // of those that are not destroyed yet
	Total   usage.Counts
	Oldest  time.Time // zero when there are none
	Newest  time.Time
	Topics  []string
	Confirm string
}

// Destroyed is what was done.
type Destroyed struct {
	Scope   string
	Count   int
	Current datakey.ID
}

// waiting is a destruction that is to be confirmed. The token stands in the store by its hash.
type waiting struct {
	Token     string    `json:"token_sha256"`
	Principal string    `json:"principal"`
	Keys      string    `json:"keys_sha256"`
	Expires   time.Time `json:"expires"`
}

type destructions struct {
	Waiting []waiting `json:"waiting"`
}

// PlanDestruction is the first step. It changes nothing.
//
// Errors: not-authorized, topic-unknown, not-found, request-invalid, key-service-unavailable, internal, audit-unavailable.
func (s *Service) PlanDestruction(ctx context.Context, call Call, target Target) (Plan, error) {
	return inspect(ctx, s, call, destroyRecord(call, target), func(ctx context.Context) (Plan, error) {
		current, records, err := s.targets(ctx, target)
		if err != nil {
			return Plan{}, err
		}
		keys, err := s.described(ctx, target.Scope, current.ID, records)
		if err != nil {
			return Plan{}, err
		}
		plan := newPlan(target.Scope, keys)
		plan.Topics = s.Policies.Current().TopicsOf(target.Scope)
		plan.Confirm, err = s.await(ctx, call, target.Scope, records)
		return plan, err
	})
}

func destroyRecord(call Call, target Target) audit.Record {
	record := call.Record(policy.ActionDestroy)
	record.Scope, record.Kids = target.Scope, texts(target.Kids)
	return record
}

func newPlan(scope string, keys []Key) Plan {
	plan := Plan{Scope: scope, Keys: keys[:min(len(keys), maxListed)]}
	for _, k := range keys {
		if k.IsDestroyed() {
			continue
		}
		plan.Count++
		plan.Total = plan.Total.Plus(k.Counts)
		if plan.Oldest.IsZero() || k.Created.Before(plan.Oldest) {
			plan.Oldest = k.Created
		}
		if k.Created.After(plan.Newest) {
			plan.Newest = k.Created
		}
	}
	return plan
}

// targets gives the scope's current key and the records of the keys to be destroyed, oldest first.
func (s *Service) targets(ctx context.Context, target Target) (current store.Record, records []store.Record, err error) {
	if current, err = s.currentOf(ctx, target.Scope); err != nil {
		return current, nil, err
	}
	if target.All {
		records, err = s.allKeys(ctx, target.Scope)
		return current, records, err
	}
	found, err := s.Store.Lookup(ctx, target.Scope, target.Kids)
	if err != nil {
		return current, nil, err
	}
	for _, id := range target.Kids {
		r, ok := found[id]
		switch {
		case !ok || r.Scope != target.Scope:
			return current, nil, refusal.New(refusal.NotFound, "scope %q has no key %s", target.Scope, id)
		case id == current.ID:
			return current, nil, fmt.Errorf("%w: %s", store.ErrCurrent, id)
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b store.Record) int { return a.Created.Compare(b.Created) })
	return current, records, nil
}

func (s *Service) allKeys(ctx context.Context, scope string) (all []store.Record, err error) {
	for after := (datakey.ID{}); ; after = all[len(all)-1].ID {
		some, err := s.Store.List(ctx, scope, after, listAtOnce)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(some) < listAtOnce {
			return all, nil
		}
		if len(all) > maxDestruction {
			return nil, refusal.New(refusal.RequestInvalid, "scope %q has more than %d keys: name them, 1,000 at a time", scope, maxDestruction)
		}
	}
}

// await notes a destruction that is to be confirmed, and gives its token.
func (s *Service) await(ctx context.Context, call Call, scope string, records []store.Record) (token string, err error) {
	token = rand.Text()
	now := time.Now().UTC()
	add := waiting{hashOf(token), call.Principal, digestOf(scope, records), now.Add(ConfirmWithin)}
	_, _, err = document.Update(ctx, s.Store, destroyKind, destroyKey, func(d *destructions) error {
		d.dropExpired(now)
		if len(d.Waiting) >= maxWaiting {
			return refusal.New(refusal.RequestInvalid, "%d destructions wait to be confirmed: try again in %s", maxWaiting, ConfirmWithin)
		}
		d.Waiting = append(d.Waiting, add)
		return nil
	})
	return token, err
}

func (d *destructions) dropExpired(now time.Time) {
	d.Waiting = slices.DeleteFunc(d.Waiting, func(w waiting) bool { return !w.Expires.After(now) })
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// digestOf stands for a scope and exactly these keys.
func digestOf(scope string, records []store.Record) string {
	ids := make([]datakey.ID, len(records))
	for i, r := range records {
		ids[i] = r.ID
	}
	slices.SortFunc(ids, func(a, b datakey.ID) int { return bytes.Compare(a[:], b[:]) })
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s %s %d\n", digestLabel, scope, len(ids))
	for _, id := range ids {
		_, _ = sum.Write(id[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Destroy is the second step.
//
// Errors: as of PlanDestruction.
func (s *Service) Destroy(ctx context.Context, call Call, target Target, token string) (Destroyed, error) {
	return change(ctx, s, call, destroyRecord(call, target), func(ctx context.Context, record *audit.Record) (Destroyed, error) {
		current, records, err := s.targets(ctx, target)
		if err != nil {
			return Destroyed{}, err
		}
		if err := s.confirm(ctx, call, token, digestOf(target.Scope, records)); err != nil {
			return Destroyed{}, err
		}
		if target.All {
			if current, err = s.Store.Replace(ctx, target.Scope, current.ID); err != nil {
				return Destroyed{}, err
			}
		}
		ids, count := living(records)
		record.Kids = texts(ids)
		if err := s.Store.Destroy(ctx, target.Scope, ids); err != nil {
			return Destroyed{}, err
		}
		return Destroyed{target.Scope, count, current.ID}, s.Revocations.ForgetEverywhere(ctx)
	})
}

// living gives the ids of all, and how many are not destroyed yet: what was begun and cut off is done to the end.
func living(records []store.Record) (ids []datakey.ID, count int) {
	for _, r := range records {
		ids = append(ids, r.ID)
		if !r.IsDestroyed() {
			count++
		}
	}
	return ids, count
}

// confirm takes a token, which is good once, for the one who got it and the keys for which he got it [CL-OPR-008].
func (s *Service) confirm(ctx context.Context, call Call, token, keys string) error {
	now := time.Now().UTC()
	_, _, err := document.Update(ctx, s.Store, destroyKind, destroyKey, func(d *destructions) error {
		d.dropExpired(now)
		at := slices.IndexFunc(d.Waiting, func(w waiting) bool {
			return w.Token == hashOf(token) && w.Principal == call.Principal && w.Keys == keys
		})
		if at < 0 {
			return refusal.New(refusal.RequestInvalid, "the token does not confirm this: it was used, is older than %s, was given to another, or the "+
				"keys changed. Call without \"confirm\" first", ConfirmWithin)
		}
		d.Waiting = slices.Delete(d.Waiting, at, at+1)
		return nil
	})
	return err
}
