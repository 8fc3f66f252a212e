package vault

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// filled gives a place with a store that holds one key of scope claims.
func filled(t *testing.T, server *testvault.Server) (Options, store.Record) {
	t.Helper()
	o := newPlace(t, server)
	initialise(t, o)
	o.Timeout = 500 * time.Millisecond
	return o, mustCurrent(t, open(t, o), "claims")
}

// Whatever somebody does to what is stored, a cold replica says what is wrong, and never "no such key".
func TestDamage(t *testing.T) {
	server := testvault.Dev(t, false)
	type place struct {
		Options
		key store.Record
	}
	data := func(p place, name string) string { return p.KV + "/data/" + p.Path + "/" + name }
	write := func(name string, data map[string]any) func(*testing.T, place) {
		return func(t *testing.T, p place) {
			t.Helper()
			server.Write(t, p.KV+"/data/"+p.Path+"/"+name, map[string]any{"data": data})
		}
	}
	remove := func(path func(place) string) func(*testing.T, place) {
		return func(t *testing.T, p place) {
			t.Helper()
			if _, err := server.Root.Logical().Delete(path(p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	metadata := func(name string) func(p place) string {
		return func(p place) string { return p.KV + "/metadata/" + p.Path + "/" + name }
	}
	head, first := headName("claims"), pageName("claims", 1)
	goodKey := func(wrapped string) map[string]any {
		return map[string]any{"kid": strings.Repeat("0", 32), "created_ms": 1, "wrapped": wrapped}
	}
	for name, c := range map[string]struct {
		damage func(*testing.T, place)
		reason Reason
	}{
		"page deleted":        {remove(func(p place) string { return data(p, first) }), Damaged},
		"page destroyed":      {remove(metadata(first)), Damaged},
		"head deleted":        {remove(func(p place) string { return data(p, head) }), Damaged},
		"page of another":     {write(first, map[string]any{"scope": "other", "keys": []any{goodKey("vault:v1:x")}}), Damaged},
		"page empty":          {write(first, map[string]any{"scope": "claims", "keys": []any{}}), Damaged},
		"page of a newer one": {write(first, map[string]any{"scope": "claims", "keys": []any{goodKey("vault:v1:x")}, "new": 1}), Damaged},
		"key in the clear":    {write(first, map[string]any{"scope": "claims", "keys": []any{goodKey("AAAA")}}), Damaged},
		"kid malformed":       {write(first, map[string]any{"scope": "claims", "keys": []any{map[string]any{"kid": "x"}}}), Damaged},
		"page not a page":     {write(first, map[string]any{"scope": 1}), Damaged},
		"head not a head":     {write(head, map[string]any{"hello": "world"}), Damaged},
		"head of another":     {write(head, map[string]any{"scope": "other", "page": 1, "current": goodKey("vault:v1:x")}), Damaged},
		"head without page":   {write(head, map[string]any{"scope": "claims", "page": 0, "current": goodKey("vault:v1:x")}), Damaged},
		"KV unmounted":        {remove(func(p place) string { return "sys/mounts/" + p.KV }), NoMount},
		"policy taken away":   {func(t *testing.T, p place) { t.Helper(); takePolicy(t, server, p.Options) }, Denied},
	} {
		t.Run(name, func(t *testing.T) {
			o, key := filled(t, server)
			s := open(t, o)
			c.damage(t, place{o, key})
			found, err := s.Lookup(t.Context(), "claims", []datakey.ID{key.ID})
			if reasonOf(err) != c.reason || found != nil || errors.Is(err, store.ErrUnavailable) {
				t.Error(found, err)
			}
		})
	}
}

func takePolicy(t *testing.T, server *testvault.Server, o Options) {
	t.Helper()
	name := strings.Replace(o.KV, "kv-", "keyservice-", 1)
	if err := server.Root.Sys().PutPolicy(name, `path "auth/token/lookup-self" { capabilities = ["read"] }`); err != nil {
		t.Fatal(err)
	}
}

// A store that was emptied as a whole is noticed by whom it served before, and by whom it did not.
func TestEmptied(t *testing.T) {
	server := testvault.Dev(t, false)
	o, key := filled(t, server)
	served, fresh := open(t, o), open(t, o)
	_ = mustCurrent(t, served, "claims")
	if err := server.Root.Sys().Unmount(o.KV); err != nil {
		t.Fatal(err)
	}
	server.Write(t, "sys/mounts/"+o.KV, map[string]any{"type": "kv", "options": map[string]any{"version": "2"}})
	testvault.Eventually(t, "the KV engine is ready", func() bool {
		_, err := server.Root.Logical().Read(o.KV + "/data/none")
		return err == nil
	})
	if _, err := served.Rotate(t.Context(), "claims"); reasonOf(err) != Damaged {
		t.Error(err)
	}
	if found, err := fresh.Lookup(t.Context(), "claims", []datakey.ID{key.ID}); !errors.Is(err, ErrMissing) {
		t.Error(found, err)
	}
	if _, err := fresh.Current(t.Context(), "claims"); !errors.Is(err, ErrMissing) {
		t.Error("a key was made in a place that is not a store:", err)
	}
	if err := fresh.Check(t.Context()); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}

// Opening makes nothing; making refuses where something is.
func TestInitAndOpen(t *testing.T) {
	server := testvault.Dev(t, false)
	o := newPlace(t, server)
	o.Timeout = time.Second
	if _, err := Open(t.Context(), o, quiet()); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	initialise(t, o)
	if err := Init(t.Context(), o, quiet()); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Error(err)
	}
	_ = mustCurrent(t, open(t, o), "claims")
	if _, err := server.Root.Logical().Delete(o.KV + "/metadata/" + o.Path + "/" + metaName); err != nil {
		t.Fatal(err)
	}
	if err := Init(t.Context(), o, quiet()); err == nil || !strings.Contains(err.Error(), "keys of 1 scopes") {
		t.Error(err)
	}
	server.Write(t, "sys/mounts/old", map[string]any{"type": "kv", "options": map[string]any{"version": "1"}})
	for name, change := range map[string]func(*Options){
		"KV version 1": func(o *Options) { o.KV = "old" }, "not KV": func(o *Options) { o.KV = o.Transit }, "no mount": func(o *Options) { o.KV = "none" },
	} {
		changed := o
		change(&changed)
		if _, err := Open(t.Context(), changed, quiet()); reasonOf(err) != NoMount {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A KEK that may leave Vault, or is of another kind, is not used; one that is missing is made only if that is allowed.
func TestKEKs(t *testing.T) {
	server := testvault.Dev(t, false)
	o, _ := filled(t, server)
	s := open(t, o)
	for scope, config := range map[string]map[string]any{
		"exportable": {"exportable": true}, "backup": {"allow_plaintext_backup": true}, "derived": {"derived": true}, "rsa": {"type": "rsa-2048"}, "aes128": {"type": "aes128-gcm96"},
	} {
		server.Write(t, o.Transit+"/keys/"+kekName(scope), config)
		if _, err := s.Current(t.Context(), scope); reasonOf(err) != Damaged {
			t.Errorf("%s: %v", scope, err)
		}
	}
	o.CreateKEKs = false
	s = open(t, o)
	if _, err := s.Current(t.Context(), "by-hand"); reasonOf(err) != Invalid || !strings.Contains(err.Error(), "create_keks") {
		t.Error(err)
	}
	server.Write(t, o.Transit+"/keys/"+kekName("by-hand"), map[string]any{"type": kekType})
	_ = mustCurrent(t, s, "by-hand")
}

// The policy of VAULT.md allows what the service does, and not to weaken a KEK, to make one by encrypting, or to delete.
func TestLeastPrivilege(t *testing.T) {
	server := testvault.Dev(t, false)
	o, _ := filled(t, server)
	s := open(t, o)
	kek := o.Transit + "/keys/" + kekName("claims")
	for _, c := range []struct {
		path string
		data map[string]any
	}{
		{kek + "/config", map[string]any{"exportable": true}},
		{kek + "/trim", map[string]any{"min_available_version": 1}},
		{o.Transit + "/keys/cipherlane-x", map[string]any{"type": kekType, "exportable": true}},
		{o.Transit + "/export/encryption-key/" + kekName("claims"), nil},
		{o.Transit + "/encrypt/no-such-key", map[string]any{"plaintext": "AAAA"}},
		{o.KV + "/destroy/" + o.Path + "/" + metaName, map[string]any{"versions": []int{1}}},
		{o.KV + "/delete/" + o.Path + "/" + pageName("claims", 1), map[string]any{"versions": []int{1}}},
		{o.KV + "/metadata/" + o.Path + "/" + pageName("claims", 1), map[string]any{"max_versions": 1}},
		{o.KV + "/data/elsewhere", map[string]any{"data": map[string]any{}}},
		{"sys/policies/acl/mine", map[string]any{"policy": ""}},
	} {
		if err := s.client.put(t.Context(), c.path, c.data, nil); reasonOf(err) != Denied {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

// A key that was taken off its page is gone from every replica when the cache's time is over, and kept for no longer
// with a cache of no time.
func TestBelievedForTTL(t *testing.T) {
	server := testvault.Dev(t, false)
	o, key := filled(t, server)
	if _, err := open(t, o).Rotate(t.Context(), "claims"); err != nil {
		t.Fatal(err)
	}
	const ttl = 2 * time.Second
	o.Cache.TTL = ttl
	cached := open(t, o)
	o.Cache.TTL = 0
	uncached := open(t, o)
	there := func(s *Store) bool {
		found, err := s.Lookup(t.Context(), "claims", []datakey.ID{key.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			keys, err := s.Unwrap(t.Context(), []store.Record{r})
			if err != nil {
				t.Fatal(err)
			}
			wipeKeys(keys)
		}
		return len(found) == 1
	}
	if !there(cached) || !there(uncached) {
		t.Fatal("the key is not there")
	}
	began := time.Now()
	p, err := uncached.readPage(t.Context(), uncached.scopes.get("claims"), 1)
	if err != nil {
		t.Fatal(err)
	}
	p.keys = p.keys[1:]
	if _, err := uncached.kv.write(t.Context(), pageName("claims", 1), p.version, p.document("claims")); err != nil {
		t.Fatal(err)
	}
	if there(uncached) {
		t.Error("given out although nothing is to be kept")
	}
	time.Sleep(time.Until(began.Add(ttl)))
	if there(cached) {
		t.Error("given out after the cache's time")
	}
	testvault.Eventually(t, "no unwrapped key is held", func() bool {
		cached.keys.mu.Lock()
		defer cached.keys.mu.Unlock()
		return cached.keys.order.Len() == 0 && time.Since(began) < 2*ttl
	})
}
