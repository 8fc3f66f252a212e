// The tokens that wait to be used: in documents of the store, one for each first byte of the hash, changed by
// check-and-set so that replicas agree. Those that have ended are left out at the next change.

package token

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// ErrNone says that there is no such token: it was never made, it has ended, or it was used.
var ErrNone = errors.New("no such token, or it has ended or was used")

// Token is a bootstrap token as it is kept.
type Token struct {
	Hash      Hash
	Principal string
	Expires   time.Time // whole seconds
}

// Store is what a Book needs of a store.
type Store interface {
	store.Documents
	store.Tags
}

// Book holds tokens. Safe for concurrent use.
type Book struct{ Store Store }

const (
	documentKind = "tokens"
	maxPerPage   = 256 // of 256 pages (spec/limits.md)
	maxTries     = 64
)

// page is a document: tokens by the hexadecimal of their hash.
type page map[string]entry

type entry struct {
	Principal string `json:"principal"`
	Expires   int64  `json:"expires"`
	Tag       string `json:"tag"` // binds the token to the KEK: to write to the store is not enough to make one
}

func pageOf(hash Hash) string { return hex.EncodeToString(hash[:1]) }

func (t Token) statement() []byte {
	s := append([]byte("bootstrap token\x00"), t.Hash[:]...)
	s = binary.BigEndian.AppendUint64(s, uint64(t.Expires.Unix())) // #nosec G115 -- only its bits count
	return append(s, t.Principal...)
}

// Add keeps a new token.
func (b *Book) Add(ctx context.Context, t Token) error {
	tag, err := b.Store.Tag(ctx, t.statement())
	if err != nil {
		return err
	}
	return b.change(ctx, t.Hash, func(p page) error {
		if len(p) >= maxPerPage {
			return fmt.Errorf("too many bootstrap tokens wait to be used: use them, or let them end")
		}
		p[hex.EncodeToString(t.Hash[:])] = entry{t.Principal, t.Expires.Unix(), tag}
		return nil
	})
}

// Find gives a token that can still be used, or ErrNone.
func (b *Book) Find(ctx context.Context, hash Hash) (Token, error) {
	p, _, err := b.read(ctx, hash)
	if err != nil {
		return Token{}, err
	}
	found, ok := p[hex.EncodeToString(hash[:])]
	if !ok {
		return Token{}, ErrNone
	}
	t := Token{hash, found.Principal, time.Unix(found.Expires, 0)}
	return t, b.Store.CheckTag(ctx, found.Tag, t.statement())
}

// Redeem uses a token up. Of any number of calls for one token, also on several replicas, one returns nil and the
// others ErrNone [CL-IDN-011].
func (b *Book) Redeem(ctx context.Context, hash Hash) error {
	if _, err := b.Find(ctx, hash); err != nil {
		return err
	}
	return b.change(ctx, hash, func(p page) error {
		name := hex.EncodeToString(hash[:])
		if _, ok := p[name]; !ok {
			return ErrNone
		}
		delete(p, name)
		return nil
	})
}

// read gives the tokens of a page that have not ended.
func (b *Book) read(ctx context.Context, hash Hash) (page, int, error) {
	data, version, err := b.Store.ReadDocument(ctx, documentKind, pageOf(hash))
	if err != nil || version == 0 {
		return page{}, version, err
	}
	p := page{}
	if err := json.Unmarshal(data, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, 0, errors.New("the bootstrap tokens in the store are damaged: restore the store, or remove the document")
	}
	now := time.Now().Unix()
	for name, e := range p {
		if e.Expires <= now {
			delete(p, name)
		}
	}
	return p, version, nil
}

// change changes a page, again when somebody else was faster.
func (b *Book) change(ctx context.Context, hash Hash, do func(page) error) error {
	for range maxTries {
		p, version, err := b.read(ctx, hash)
		if err != nil {
			return err
		}
		if err := do(p); err != nil {
			return err
		}
		data, err := json.Marshal(p, json.Deterministic(true))
		if err != nil {
			return err
		}
		err = b.Store.WriteDocument(ctx, documentKind, pageOf(hash), version, data)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%w: the bootstrap tokens are changed by too many at once", store.ErrUnavailable)
}
