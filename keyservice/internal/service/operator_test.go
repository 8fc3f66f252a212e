package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/document"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded/embeddedtest"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// calls are the operator's calls, by name.
func (f *fixture) calls(ctx context.Context, old datakey.ID) map[string]func(Call) error {
	target := Target{Scope: "claims", Kids: []datakey.ID{old}}
	return map[string]func(Call) error{
		"admin status":  func(c Call) error { _, err := f.Status(ctx, c); return err },
		"admin policy":  func(c Call) error { _, err := f.Policy(ctx, c); return err },
		"admin scopes":  func(c Call) error { _, _, err := f.Scopes(ctx, c, Page{Limit: 9}); return err },
		"admin keys":    func(c Call) error { _, _, err := f.Keys(ctx, c, "claims", datakey.ID{}, 9); return err },
		"admin leases":  func(c Call) error { _, err := f.ListLeases(ctx, c, "", "", Page{Limit: 9}); return err },
		"admin revoked": func(c Call) error { _, _, err := f.ListRevocations(ctx, c, Page{Limit: 9}); return err },
		"admin how far": func(c Call) error { _, err := f.RewrapProgress(ctx, c); return err },
		"destroy plan":  func(c Call) error { _, err := f.PlanDestruction(ctx, c, target); return err },
		"rotate":        func(c Call) error { _, err := f.Rotate(ctx, c, "claims"); return err },
		"revoke":        func(c Call) error { _, err := f.Revoke(ctx, c, lease.Names{Scope: "t-z"}, "why"); return err },
		"admin rewrap":  func(c Call) error { _, err := f.StartRewrap(ctx, c); return err },
	}
}

// [CL-OPR-001] Every call needs its grant, and what changes something is in the audit log before it is begun: without an
// audit log nothing changes.
func TestCallsNeedGrantAndAudit(t *testing.T) {
	f := newFixture(t, embeddedtest.New(t), nil)
	old := f.key(t, "claims", nil)
	if _, err := f.Rotate(t.Context(), as("operator"), "claims"); err != nil {
		t.Fatal(err)
	}
	for name, call := range f.calls(t.Context(), old) {
		for _, principal := range []string{"producer", "consumer", "nobody", "", "operator2", "Operator"} {
			if code := codeOf(t, call(as(principal))); code != refusal.NotAuthorized {
				t.Errorf("%s as %q: %s", name, principal, code)
			}
		}
		if err := call(as("operator")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	current, err := f.Store.Peek(t.Context(), "claims")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := f.PlanDestruction(t.Context(), as("operator"), Target{Scope: "claims", Kids: []datakey.ID{old}})
	if err != nil {
		t.Fatal(err)
	}
	before := f.Revocations.Count()
	if err := f.auditLog.Close(); err != nil {
		t.Fatal(err)
	}
	for name, call := range f.calls(t.Context(), old) {
		if code := codeOf(t, call(as("operator"))); code != refusal.AuditUnavailable {
			t.Errorf("%s without an audit log: %s", name, code)
		}
	}
	_, err = f.Destroy(t.Context(), as("operator"), Target{Scope: "claims", Kids: []datakey.ID{old}}, plan.Confirm)
	if codeOf(t, err) != refusal.AuditUnavailable {
		t.Error(err)
	}
	found, err := f.Store.Lookup(t.Context(), "claims", []datakey.ID{old})
	now, _ := f.Store.Peek(t.Context(), "claims")
	if err != nil || found[old].IsDestroyed() || now.ID != current.ID || f.Revocations.Count() != before {
		t.Error("something changed without an audit log", err)
	}
}

// [CL-OPR-008] A token is for the one who got it, for a while, and used up by what it confirmed.
func TestTokens(t *testing.T) {
	f := newFixture(t, embeddedtest.New(t), nil)
	old := f.key(t, "claims", nil)
	if _, err := f.Rotate(t.Context(), as("operator"), "claims"); err != nil {
		t.Fatal(err)
	}
	target := Target{Scope: "claims", Kids: []datakey.ID{old}}
	plan := func() string {
		t.Helper()
		p, err := f.PlanDestruction(t.Context(), as("operator"), target)
		if err != nil || p.Count != 1 {
			t.Fatal(p, err)
		}
		return p.Confirm
	}
	token := plan()
	other := as("operator")
	other.Principal = "somebody"
	if err := f.confirm(t.Context(), other, token, digestOf("claims", []store.Record{{ID: old}})); codeOf(t, err) != refusal.RequestInvalid {
		t.Error("confirmed by another:", err)
	}
	_, _, err := document.Update(t.Context(), f.Store, destroyKind, destroyKey, func(d *destructions) error {
		for i := range d.Waiting {
			if strings.Contains(fmt.Sprint(d.Waiting[i]), token) {
				t.Error("the token itself is in the store")
			}
			d.Waiting[i].Expires = time.Now().Add(-time.Second)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Destroy(t.Context(), as("operator"), target, token); codeOf(t, err) != refusal.RequestInvalid {
		t.Error("confirmed too late:", err)
	}
	token = plan()
	if done, err := f.Destroy(t.Context(), as("operator"), target, token); err != nil || done.Count != 1 {
		t.Fatal(done, err)
	}
	if _, err := f.Destroy(t.Context(), as("operator"), target, token); codeOf(t, err) != refusal.RequestInvalid {
		t.Error("confirmed twice:", err)
	}
	for range maxWaiting {
		_, err = f.PlanDestruction(t.Context(), as("operator"), target)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.PlanDestruction(t.Context(), as("operator"), target); codeOf(t, err) != refusal.RequestInvalid {
		t.Error("any number of destructions may wait:", err)
	}
}

// A destruction that failed half-way is recorded as refused with its kids, and can be done again.
func TestDestroyFails(t *testing.T) {
	f, faults := withFaults(t)
	old := f.key(t, "claims", nil)
	if _, err := f.Rotate(t.Context(), as("operator"), "claims"); err != nil {
		t.Fatal(err)
	}
	target := Target{Scope: "claims", All: true}
	for _, fault := range []error{store.ErrUnavailable, errors.New("broken"), nil} {
		faults.destroy = fault
		plan, err := f.PlanDestruction(t.Context(), as("operator"), target)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Destroy(t.Context(), as("operator"), target, plan.Confirm); (err == nil) != (fault == nil) {
			t.Fatal(err)
		}
	}
	d, err := f.DecryptionKeys(t.Context(), as("consumer"), "claims", []datakey.ID{old, {1}})
	if err != nil || d.Keys[0].Refusal.Code != refusal.KeyDestroyed || d.Keys[1].Refusal.Code != refusal.KeyUnknown {
		t.Error(d, err)
	}
	lines := f.lines(t)
	for _, want := range []string{"destroy begun", "destroy refused internal", "destroy refused key-service-unavailable", "destroy allowed", "decrypt refused key-destroyed"} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is not in the audit log: %v", want, lines)
		}
	}
}

// [CL-OPR-003] A revoked principal gets nothing at all, and not even the one who would take that back if it is he.
func TestAdmit(t *testing.T) {
	f := newFixture(t, embeddedtest.New(t), nil)
	if err := f.Admit(as("producer")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Revoke(t.Context(), as("operator"), lease.Names{Principal: "producer"}, ""); err != nil {
		t.Fatal(err)
	}
	if code := codeOf(t, f.Admit(as("producer"))); code != refusal.NotAuthorized {
		t.Error(code)
	}
	for _, topic := range []string{"claims", "clear"} {
		if _, err := f.EncryptionKey(t.Context(), as("producer"), topic, nil); codeOf(t, err) != refusal.NotAuthorized {
			t.Error(topic, err)
		}
	}
	if _, err := f.Revoke(t.Context(), as("operator"), lease.Names{Principal: "operator"}, ""); codeOf(t, err) != refusal.RequestInvalid {
		t.Error(err)
	}
}

// [CL-OPR-005] No lease reaches past the end of its grant.
func TestLeaseEndsWithItsGrant(t *testing.T) {
	f := newFixture(t, embeddedtest.New(t), nil)
	k, err := f.EncryptionKey(t.Context(), as("soon"), "claims", nil)
	if err != nil || k.Lease.ExpiresIn > soon || k.Lease.RefreshIn > k.Lease.ExpiresIn {
		t.Fatal(k.Lease, err)
	}
	d, err := f.DecryptionKeys(t.Context(), as("soon"), "claims", []datakey.ID{k.Kid})
	if err != nil || d.Lease.ExpiresIn > soon {
		t.Fatal(d.Lease, err)
	}
	longer, err := f.EncryptionKey(t.Context(), as("producer"), "claims", nil)
	if err != nil || longer.Lease.ExpiresIn <= soon {
		t.Fatal("this test shows nothing", longer.Lease, err)
	}
	listed, err := f.ListLeases(t.Context(), as("operator"), "soon", "", Page{Limit: 10})
	if err != nil || len(listed.Leases) != 2 || listed.Leases[0].Expires.After(time.Now().Add(soon)) {
		t.Error(listed, err)
	}
}

// [CL-API-011] A thousand clients at once for the same ten topics, nothing in memory: one key for each scope, every client
// served, no error. On Vault they are spread over two replicas.
func TestThousandClients(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { thousandClients(t, newFixture(t, embeddedtest.New(t), nil)) })
	t.Run("vault", func(t *testing.T) {
		server := testvault.Dev(t, false)
		place := server.NewPlace(t)
		o := vault.Defaults()
		o.Addresses, o.Timeout = []string{server.Address}, 10*time.Second
		o.Transit, o.KV, o.Login.Token = place.Transit, place.KV, &vault.TokenLogin{File: place.TokenFile}
		if err := vault.Init(t.Context(), o, quietLog()); err != nil {
			t.Fatal(err)
		}
		thousandClients(t, newFixture(t, openVault(t, o), nil), newFixture(t, openVault(t, o), nil))
	})
}

func openVault(t *testing.T, o vault.Options) store.Store {
	t.Helper()
	s, err := vault.Open(t.Context(), o, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func thousandClients(t *testing.T, replicas ...*fixture) {
	t.Helper()
	const clients, topics = 1000, 10
	var mu sync.Mutex
	kids := map[string]map[datakey.ID]bool{}
	served := 0
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			<-start
			topic := fmt.Sprint("t-", i%topics)
			k, err := replicas[i/topics%len(replicas)].EncryptionKey(context.WithoutCancel(t.Context()), as("producer"), topic, nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			if kids[topic] == nil {
				kids[topic] = map[datakey.ID]bool{}
			}
			kids[topic][k.Kid] = true
			served++
		})
	}
	began := time.Now()
	close(start)
	wait.Wait()
	t.Logf("%d clients, %d topics, %d replicas: served within %s", clients, topics, len(replicas), time.Since(began).Round(time.Millisecond))
	if served != clients || len(kids) != topics {
		t.Errorf("%d of %d served", served, clients)
	}
	for topic, different := range kids {
		all, err := replicas[0].Store.List(t.Context(), topic, datakey.ID{}, 10)
		if err != nil || len(different) != 1 || len(all) != 1 {
			t.Errorf("%s: %d keys were given out, %d made: %v", topic, len(different), len(all), err)
		}
	}
}
