// The figures that the key service promises for Vault: round trips and time for many keys at once.

package vault

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

const (
	backlog = 12_096 // keys of a week, at one in 50 seconds
	oneCall = 1_000  // kids in one call, at most
)

// fill makes many keys of a scope at once, by the store's own parts: wrapped in batches, written page by page.
func fill(t *testing.T, s *Store, name string, count int) []datakey.ID {
	t.Helper()
	sc := s.scopes.get(name)
	if err := s.transit.ensure(t.Context(), kekName(name)); err != nil {
		t.Fatal(err)
	}
	var ids []datakey.ID
	number := 0
	for part := range slices.Chunk(make([]struct{}, count), pageSize) {
		records := wrapMany(t, s, name, len(part))
		number++
		if _, err := s.kv.write(t.Context(), pageName(name, number), 0, page{keys: records}.document(name)); err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			ids = append(ids, r.ID)
		}
		if err := s.putHead(t.Context(), sc, head{max(number-1, 0), number, records[len(records)-1]}); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// The benchmark (benchmarks/release) runs this as a child process: it writes a week's backlog into the Vault that the environment names,
// and the kids into a file.
func TestFillForBenchmark(t *testing.T) {
	out := os.Getenv("CIPHERLANE_FILL_OUT")
	if out == "" {
		t.Skip("only for the benchmark")
	}
	o := Defaults()
	o.Addresses, o.Timeout = []string{os.Getenv("CIPHERLANE_FILL_VAULT")}, 10*time.Second
	o.Transit, o.KV = os.Getenv("CIPHERLANE_FILL_TRANSIT"), os.Getenv("CIPHERLANE_FILL_KV")
	o.Login.Token = &TokenLogin{File: os.Getenv("CIPHERLANE_FILL_TOKEN")}
	var lines strings.Builder
	for _, id := range fill(t, open(t, o), os.Getenv("CIPHERLANE_FILL_SCOPE"), backlog) {
		fmt.Fprintln(&lines, id)
	}
	if err := os.WriteFile(out, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wrapMany(t *testing.T, s *Store, scope string, count int) []store.Record {
	t.Helper()
	records, keys := make([]store.Record, count), make([]*datakey.Key, count)
	for i := range records {
		keys[i] = datakey.Generate()
		id, err := keys[i].ID()
		if err != nil {
			t.Fatal(err)
		}
		records[i] = store.Record{ID: id, Scope: scope, Created: time.Now().UTC().Truncate(time.Millisecond)}
	}
	records, err := s.transit.wrapMany(t.Context(), kekName(scope), records, keys)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// release does what a decryption call does, and tells how long the two parts took.
func release(t *testing.T, s *Store, ids []datakey.ID) (lookup, unwrap time.Duration) {
	t.Helper()
	began := time.Now()
	found, err := s.Lookup(t.Context(), "claims", ids)
	if err != nil || len(found) != len(ids) {
		t.Fatal(len(found), err)
	}
	lookup = time.Since(began)
	records := make([]store.Record, len(ids))
	for i, id := range ids {
		records[i] = found[id]
	}
	keys, err := s.Unwrap(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	wipeKeys(keys)
	return lookup, time.Since(began) - lookup
}

// At most one round trip for 100 keys when nothing is in memory, none when all is; a week's backlog within 5 seconds.
func TestFigures(t *testing.T) {
	server := testvault.Dev(t, false)
	o := newPlace(t, server)
	o.Timeout = 10 * time.Second
	initialise(t, o)
	ids := fill(t, open(t, o), "claims", backlog)
	proxy := testvault.NewProxy(t, server)
	counted := o
	counted.Addresses = []string{proxy.Address}

	for name, call := range map[string][]datakey.ID{"oldest": ids[:oneCall], "newest": ids[backlog-oneCall:], "spread": every(ids, backlog/oneCall)[:oneCall]} {
		s := open(t, counted)
		proxy.Take()
		release(t, s, call)
		cold := proxy.Take()
		release(t, s, call)
		warm := proxy.Take()
		t.Logf("%d keys, the %s of %d: %d round trips cold, %d warm", oneCall, name, backlog, len(cold), len(warm))
		if len(cold) > oneCall/100 || len(warm) != 0 {
			t.Errorf("%s: cold %s\nwarm %s", name, strings.Join(cold, "\n"), strings.Join(warm, "\n"))
		}
	}
	backlogWithin(t, open(t, o), ids, 5*time.Second)
}

func backlogWithin(t *testing.T, s *Store, ids []datakey.ID, limit time.Duration) {
	t.Helper()
	var lookup, unwrap time.Duration
	for call := range slices.Chunk(ids, oneCall) {
		l, u := release(t, s, call)
		lookup, unwrap = lookup+l, unwrap+u
	}
	t.Logf("%d keys cold, %d in a call: %s (KV %s, transit %s)", len(ids), oneCall, lookup+unwrap, lookup, unwrap)
	if lookup+unwrap > limit {
		t.Error("more than", limit)
	}
}

func every(ids []datakey.ID, n int) []datakey.ID {
	var some []datakey.ID
	for i := 0; i < len(ids); i += n {
		some = append(some, ids[i])
	}
	return some
}

// [CL-API-011] A thousand clients at once for ten scopes without keys: one key for each scope, made once, and nobody else
// goes to Vault.
func TestThousandCallers(t *testing.T) {
	_, proxy, o := throughProxy(t)
	o.Timeout = 10 * time.Second
	s := open(t, o)
	proxy.Take()
	const callers, scopes = 1000, 10
	ids := make(chan datakey.ID, callers)
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			r, err := s.Current(context.WithoutCancel(t.Context()), fmt.Sprint("scope-", i%scopes))
			if err != nil {
				t.Error(err)
				return
			}
			keys, err := s.Unwrap(context.WithoutCancel(t.Context()), []store.Record{r})
			if err != nil {
				t.Error(err)
			}
			wipeKeys(keys)
			ids <- r.ID
		})
	}
	wait.Wait()
	close(ids)
	different := map[datakey.ID]bool{}
	for id := range ids {
		different[id] = true
	}
	requests := len(proxy.Take())
	t.Logf("%d callers, %d scopes: %d keys, %d requests to Vault", callers, scopes, len(different), requests)
	if len(different) != scopes || requests > 12*scopes {
		t.Error("more than one key for a scope, or too many requests")
	}
}

// A page that is full is followed by another, and both are found by a replica that knows neither.
func TestNextPage(t *testing.T) {
	server := testvault.Dev(t, false)
	o := newPlace(t, server)
	initialise(t, o)
	s := open(t, o)
	ids := fill(t, s, "claims", pageSize-1)
	for range 3 {
		r, err := s.Rotate(t.Context(), "claims")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	other := open(t, o)
	if mustCurrent(t, other, "claims").ID != ids[len(ids)-1] {
		t.Error("the last key is not current")
	}
	for _, call := range [][]datakey.ID{ids[:1], ids[pageSize-2:], ids[:oneCall]} {
		release(t, other, call)
	}
	for number, want := range map[int]int{1: pageSize, 2: 2, 3: 0} {
		p, err := other.readPage(t.Context(), other.scopes.get("claims"), number)
		if err != nil || len(p.keys) != want {
			t.Errorf("page %d has %d keys, not %d: %v", number, len(p.keys), want, err)
		}
	}
}

// Kids that nobody knows cost one look each time, and a search of the other scopes now and then only.
func TestUnknownKids(t *testing.T) {
	server, proxy, o := throughProxy(t)
	_ = server
	o.Timeout = 5 * time.Second
	s := open(t, o)
	for _, scope := range []string{"claims", "a", "b", "c"} {
		_ = mustCurrent(t, s, scope)
	}
	lookup := func(id byte) int {
		t.Helper()
		proxy.Take()
		found, err := s.Lookup(t.Context(), "claims", []datakey.ID{{id}, {id, 1}})
		if err != nil || len(found) != 0 {
			t.Fatal(found, err)
		}
		return len(proxy.Take())
	}
	if first := lookup(1); first > 2+1+2*4 {
		t.Error("the first look took", first)
	}
	for id := byte(2); id < 10; id++ {
		if n := lookup(id); n > 2 { // head and newest page
			t.Error("took", n)
		}
	}
}
