// Package storetest holds what every backend of package store must do, as tests that each of them runs.
package storetest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// Backend makes stores for the tests.
type Backend struct {
	// New makes an empty store and gives a function that opens it. Backends for many replicas allow several at once.
	New func(t *testing.T) (open func() store.Store)
	// Replicas tells whether several may be open at once.
	Replicas bool
	// Holds tells whether the last store made holds these bytes anywhere. May be nil.
	Holds func(t *testing.T, data []byte) bool
	// Staleness is how long another replica may go on with an older current key.
	Staleness time.Duration
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	t.Helper()
	tests := map[string]func(*testing.T, Backend){
		"Current": testCurrent, "Rotate": testRotate, "Lookup": testLookup, "Unwrap": testUnwrap, "Tampered": testTampered,
		"FirstKey": testFirstKey, "Reopen": testReopen, "ScopeNames": testScopeNames, "Cancelled": testCancelled,
		"Currents": testCurrents, "ConcurrentRotations": testConcurrentRotations, "Replace": testReplace,
		"ConcurrentReplace": testConcurrentReplace, "List": testList, "Destroy": testDestroy, "DestroyRefused": testDestroyRefused,
		"Documents": testDocuments, "ConcurrentDocuments": testConcurrentDocuments, "Rewrap": testRewrap,
		"RewrapInterrupted": testRewrapInterrupted,
		"Tags":              testTags, "Tokens": testTokens, "ForgedTokens": testForgedTokens, "RedeemedOnce": testRedeemedOnce,
	}
	if b.Replicas {
		tests["OtherReplica"], tests["DestroyedElsewhere"] = testOtherReplica, testDestroyedElsewhere
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

func current(t *testing.T, s store.Store, scope string) store.Record {
	t.Helper()
	r, err := s.Current(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if r.Scope != scope || len(r.Wrapped) == 0 || r.Created != r.Created.Truncate(time.Millisecond) {
		t.Fatalf("not a whole record: %+v", r)
	}
	return r
}

func rotate(t *testing.T, s store.Store, scope string) store.Record {
	t.Helper()
	r, err := s.Rotate(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text unwraps a key and gives it in base64.
func text(t *testing.T, s store.Store, r store.Record) string {
	t.Helper()
	keys, err := s.Unwrap(t.Context(), []store.Record{r})
	if err != nil {
		t.Fatal(err)
	}
	defer keys[0].Wipe()
	if id, err := keys[0].ID(); err != nil || id != r.ID {
		t.Fatal("not the key of that id", err)
	}
	return string(keys[0].AppendBase64(nil))
}

func testCurrent(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	first := current(t, s, "claims")
	if again := current(t, s, "claims"); again.ID != first.ID {
		t.Fatal("the current key changed by itself")
	}
	if other := current(t, s, "other"); other.ID == first.ID {
		t.Fatal("two scopes share a key")
	}
	if age := time.Since(first.Created); age < -time.Second || age > time.Minute {
		t.Fatal("made at", first.Created)
	}
}

func testRotate(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	if r := rotate(t, s, "never-used-before"); current(t, s, "never-used-before").ID != r.ID {
		t.Fatal("rotating a scope without a key did not make its first")
	}
	first := current(t, s, "claims")
	before := text(t, s, first)
	second := rotate(t, s, "claims")
	if second.ID == first.ID || current(t, s, "claims").ID != second.ID {
		t.Fatal("not rotated")
	}
	found, err := s.Lookup(t.Context(), "claims", []datakey.ID{first.ID, second.ID})
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	if text(t, s, found[first.ID]) != before || text(t, s, found[second.ID]) == before {
		t.Fatal("the old key is not the one that it was")
	}
}

// An id that is not there is left out; one of another scope is found, and says so.
func testLookup(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	mine, other := current(t, s, "claims"), current(t, s, "other")
	for _, scope := range []string{"claims", "other", "no-such-scope"} {
		found, err := s.Lookup(t.Context(), scope, []datakey.ID{mine.ID, {1}, other.ID, {2}})
		if err != nil || len(found) != 2 || found[mine.ID].Scope != "claims" || found[other.ID].Scope != "other" {
			t.Fatal(scope, found, err)
		}
		if r := found[mine.ID]; r.ID != mine.ID || !r.Created.Equal(mine.Created) || !bytes.Equal(r.Wrapped, mine.Wrapped) {
			t.Fatal("not the record that was stored", r)
		}
	}
	for _, ids := range [][]datakey.ID{nil, {{3}}, {{}}} {
		if found, err := s.Lookup(t.Context(), "claims", ids); err != nil || len(found) != 0 {
			t.Fatal(found, err)
		}
	}
}

// Order is kept, repetitions are allowed, and what one caller wipes another still has.
func testUnwrap(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	records := []store.Record{current(t, s, "a"), current(t, s, "b"), rotate(t, s, "a")}
	records = append(records, records[0], records[1])
	keys, err := s.Unwrap(t.Context(), records)
	if err != nil || len(keys) != len(records) {
		t.Fatal(err)
	}
	for i, k := range keys {
		if id, err := k.ID(); err != nil || id != records[i].ID {
			t.Fatal("key", i, "is not in its place", err)
		}
	}
	keys[0].Wipe()
	if id, err := keys[3].ID(); err != nil || id != records[3].ID || text(t, s, records[0]) == "" {
		t.Fatal("wiping one key wiped another", err)
	}
	if none, err := s.Unwrap(t.Context(), nil); err != nil || len(none) != 0 {
		t.Fatal(none, err)
	}
}

func flipped(wrapped []byte) []byte {
	wrapped = bytes.Clone(wrapped)
	wrapped[len(wrapped)/2] ^= 1
	return wrapped
}

// [CL-API-010] No record can be passed off as another, whether or not the right one was unwrapped before.
func testTampered(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	good, other := current(t, s, "claims"), current(t, s, "other")
	changed := map[string]func(*store.Record){
		"scope":       func(r *store.Record) { r.Scope = "other" },
		"id":          func(r *store.Record) { r.ID[0] ^= 1 },
		"other's id":  func(r *store.Record) { r.ID = other.ID },
		"time":        func(r *store.Record) { r.Created = r.Created.Add(time.Millisecond) },
		"other's key": func(r *store.Record) { r.ID, r.Wrapped, r.Created = other.ID, other.Wrapped, other.Created },
		"flipped bit": func(r *store.Record) { r.Wrapped = flipped(r.Wrapped); r.Created = r.Created.Add(time.Hour) },
		"empty":       func(r *store.Record) { r.Wrapped = nil; r.Created = r.Created.Add(time.Hour) },
		"no scope":    func(r *store.Record) { r.Scope = "" },
	}
	for range 2 {
		for name, change := range changed {
			bad := good
			change(&bad)
			if keys, err := s.Unwrap(t.Context(), []store.Record{other, bad}); err == nil || keys != nil {
				t.Errorf("%s: unwrapped", name)
			}
		}
		_ = text(t, s, good)
	}
}

func testReopen(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	s := open()
	first := current(t, s, "claims")
	key := text(t, s, first)
	second := rotate(t, s, "claims")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	found, err := s.Lookup(t.Context(), "claims", []datakey.ID{first.ID})
	if err != nil || text(t, s, found[first.ID]) != key || current(t, s, "claims").ID != second.ID {
		t.Fatal("not the same store", err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Every scope that Kafka's rules allow, and no two of them mixed up.
func testScopeNames(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	names := []string{
		".a", "a.", "a..b", "a...b", "a.b", "-", "_", "-a-", "A", "a", "...", ".-.", "scope-a-v1", "hash-a-v1", "data", "meta", "0",
		strings.Repeat("x", 249), strings.Repeat("..x", 83),
	}
	ids := map[datakey.ID]string{}
	for _, name := range names {
		r := current(t, s, name)
		if twin, used := ids[r.ID]; used {
			t.Errorf("%q and %q share a key", name, twin)
		}
		ids[r.ID] = name
		_ = text(t, s, r)
		if current(t, s, name).ID != r.ID {
			t.Errorf("%q: the key changed by itself", name)
		}
	}
	all, err := s.Currents(t.Context())
	if err != nil || len(all) != len(names) {
		t.Fatalf("%d of %d scopes are listed: %v", len(all), len(names), err)
	}
}

func testCancelled(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	r := current(t, s, "claims")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, currentErr := s.Current(ctx, "new")
	_, rotateErr := s.Rotate(ctx, "claims")
	_, lookupErr := s.Lookup(ctx, "claims", []datakey.ID{{9}})
	_, currentsErr := s.Currents(ctx)
	for i, err := range []error{currentErr, rotateErr, lookupErr, currentsErr, s.Check(ctx)} {
		if err == nil {
			t.Error("call", i, "went on after its end")
		}
	}
	if current(t, s, "claims").ID != r.ID {
		t.Error("a cancelled rotation rotated")
	}
}

func testCurrents(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	if none, err := s.Currents(t.Context()); err != nil || len(none) != 0 {
		t.Fatal(none, err)
	}
	want := map[datakey.ID]bool{current(t, s, "a").ID: true, current(t, s, "b").ID: true}
	_ = current(t, s, "c")
	want[rotate(t, s, "c").ID] = true
	got, err := s.Currents(t.Context())
	if err != nil || len(got) != len(want) {
		t.Fatal(got, err)
	}
	for _, r := range got {
		if !want[r.ID] {
			t.Error("not a current key:", r.ID, r.Scope)
		}
	}
}
