// Tags, and bootstrap tokens on top of documents and tags.

package storetest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
)

// [CL-IDN-010] A tag fits the statement that it was made for, on every replica, and nothing else.
func testTags(t *testing.T, b Backend) {
	t.Helper()
	stores := replicas(t, b)
	statement := []byte("statement")
	tag, err := stores[0].Tag(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stores {
		if err := s.CheckTag(t.Context(), tag, statement); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct{ tag, statement string }{
		"other statement": {tag, "statemenT"},
		"empty statement": {tag, ""},
		"empty tag":       {"", "statement"},
		"cut tag":         {tag[:len(tag)-1], "statement"},
		"nonsense":        {"vault:v1:AAAA", "statement"},
		"a data key":      {string(current(t, stores[0], "claims").Wrapped), "statement"},
	} {
		if err := stores[0].CheckTag(t.Context(), c.tag, []byte(c.statement)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func newToken(t *testing.T, book *token.Book, life time.Duration) token.Hash {
	t.Helper()
	_, hash := token.New()
	if err := book.Add(t.Context(), token.Token{Hash: hash, Principal: "alice", Expires: time.Now().Add(life).Truncate(time.Second)}); err != nil {
		t.Fatal(err)
	}
	return hash
}

// [CL-IDN-010] [CL-IDN-012] A token is found until it ends or is used, by its hash only.
func testTokens(t *testing.T, b Backend) {
	t.Helper()
	open := b.New(t)
	s := open()
	book := &token.Book{Store: s}
	hash, short, other := newToken(t, book, time.Hour), newToken(t, book, 2*time.Second), newToken(t, book, time.Hour)
	if found, err := book.Find(t.Context(), hash); err != nil || found.Principal != "alice" || found.Hash != hash {
		t.Fatal(found, err)
	}
	if _, err := book.Find(t.Context(), token.Hash{1}); !errors.Is(err, token.ErrNone) {
		t.Error("an unknown one:", err)
	}
	if err := book.Redeem(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	if err := book.Redeem(t.Context(), hash); !errors.Is(err, token.ErrNone) {
		t.Error("used twice:", err)
	}
	if _, err := book.Find(t.Context(), hash); !errors.Is(err, token.ErrNone) {
		t.Error("used, and found:", err)
	}
	time.Sleep(2100 * time.Millisecond)
	if err := book.Redeem(t.Context(), short); !errors.Is(err, token.ErrNone) {
		t.Error("ended:", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	book = &token.Book{Store: open()}
	if err := book.Redeem(t.Context(), hash); !errors.Is(err, token.ErrNone) {
		t.Error("used before a restart:", err)
	}
	if err := book.Redeem(t.Context(), other); err != nil {
		t.Error("lost by a restart:", err)
	}
}

// [CL-IDN-010] Who can write documents cannot make a token, nor change one.
func testForgedTokens(t *testing.T, b Backend) {
	t.Helper()
	s := b.New(t)()
	book := &token.Book{Store: s}
	hash := newToken(t, book, time.Hour)
	key := hex.EncodeToString(hash[:1])
	data, version, err := s.ReadDocument(t.Context(), "tokens", key)
	if err != nil {
		t.Fatal(err)
	}
	var page map[string]map[string]any
	if err := json.Unmarshal(data, &page); err != nil {
		t.Fatal(err)
	}
	entry := page[hex.EncodeToString(hash[:])]
	for member, value := range map[string]any{"principal": "operator", "expires": time.Now().Add(48 * time.Hour).Unix(), "tag": ""} {
		good := entry[member]
		entry[member] = value
		forged, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.WriteDocument(t.Context(), "tokens", key, version, forged); err != nil {
			t.Fatal(err)
		}
		version++
		if found, err := book.Find(t.Context(), hash); err == nil {
			t.Errorf("%s changed: %+v", member, found)
		}
		if err := book.Redeem(t.Context(), hash); err == nil {
			t.Errorf("%s changed: redeemed", member)
		}
		entry[member] = good
	}
	if err := s.WriteDocument(t.Context(), "tokens", key, version, []byte(`{"a":7}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Find(t.Context(), hash); err == nil || errors.Is(err, token.ErrNone) {
		t.Error("a damaged page:", err)
	}
	if bytes.Contains(data, []byte(token.Prefix)) {
		t.Error("the token itself is kept")
	}
}

// [CL-IDN-011] A thousand calls, on all replicas: one wins, and all others are told the same. Of a backend behind a network
// a hundred at once are asked, which is what its timeout has room for on a busy machine.
func testRedeemedOnce(t *testing.T, b Backend) {
	t.Helper()
	stores := replicas(t, b)
	hash := newToken(t, &token.Book{Store: stores[0]}, time.Hour)
	callers, each := 1000, 1
	if b.Replicas {
		callers, each = 100, 10
	}
	var won, lost atomic.Int32
	var wait sync.WaitGroup
	start := make(chan struct{})
	ctx := context.WithoutCancel(t.Context())
	for i := range callers {
		book := &token.Book{Store: stores[i%len(stores)]}
		wait.Go(func() {
			<-start
			for range each {
				switch err := book.Redeem(ctx, hash); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, token.ErrNone):
					lost.Add(1)
				case !errors.Is(err, store.ErrUnavailable):
					t.Error(err)
				}
			}
		})
	}
	close(start)
	wait.Wait()
	if won.Load() != 1 || lost.Load() == 0 {
		t.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
}
