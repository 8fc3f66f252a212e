// What stands where in Vault (spec/decisions/0006-vault-layout.md):
//
//	meta                 shows that this is a store, and that KV and KEKs belong together
//	scopes/NAME          the scope's current key, and the number of its last page
//	keys/NAME/NUMBER     a page: up to pageSize keys of the scope in the order in which they were made
//	documents/KIND/NAME  what the service keeps beside the keys
//
// NAME is made of the scope. Everything read is checked as if somebody else had written it.

package vault

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	pageSize   = 2048 // keys; a full page has some 370 KB, under the limits of Raft (1 MiB) and Consul (512 KB)
	maxPages   = 1_000_000
	maxWrapped = 512 // bytes; Vault's form of 32 bytes has 97
	metaName   = "meta"
	scopesDir  = "scopes"
	metaFormat = "cipherlane-keyservice vault store 1"
	metaKEK    = "cipherlane-meta"
)

// nameOf gives the part of a path that stands for a scope. Vault refuses two dots in a row: such a scope is named by its
// hash. Prefix and suffix keep the two kinds apart and satisfy transit, whose names begin and end with a letter.
func nameOf(scope string) string {
	if strings.Contains(scope, "..") {
		sum := sha256.Sum256([]byte(scope))
		return "hash-" + hex.EncodeToString(sum[:]) + "-v1"
	}
	return "scope-" + scope + "-v1"
}

func kekName(scope string) string          { return "cipherlane-" + nameOf(scope) }
func headName(scope string) string         { return scopesDir + "/" + nameOf(scope) }
func documentName(kind, key string) string { return "documents/" + kind + "/" + nameOf(key) }
func pageName(scope string, number int) string {
	return "keys/" + nameOf(scope) + "/" + strconv.Itoa(number)
}

// keyDocument is a data key as it stands in a document.
type keyDocument struct {
	Kid       string `json:"kid"`
	Created   int64  `json:"created_ms"`
	Wrapped   string `json:"wrapped,omitzero"`
	Destroyed int64  `json:"destroyed_ms,omitzero"`
}

type metaDocument struct {
	Format string      `json:"format"`
	Check  keyDocument `json:"kek_check"` // a data key that nothing is encrypted under
}

type headDocument struct {
	Scope   string      `json:"scope"`
	Page    int         `json:"page"`
	Current keyDocument `json:"current"`
}

type pageDocument struct {
	Scope string        `json:"scope"`
	Keys  []keyDocument `json:"keys"`
}

func documentOf(r store.Record) keyDocument {
	d := keyDocument{Kid: r.ID.String(), Created: r.Created.UnixMilli(), Wrapped: string(r.Wrapped)}
	if r.IsDestroyed() {
		d.Destroyed = r.Destroyed.UnixMilli()
	}
	return d
}

// record checks a key that was read.
func (d keyDocument) record(scope string) (store.Record, error) {
	id, err := datakey.ParseID(d.Kid)
	if err != nil {
		return store.Record{}, err
	}
	r := store.Record{ID: id, Scope: scope, Created: time.UnixMilli(d.Created).UTC()}
	switch {
	case d.Destroyed != 0 && d.Wrapped == "":
		r.Destroyed = time.UnixMilli(d.Destroyed).UTC()
	case d.Destroyed != 0 || !isWrapped(d.Wrapped):
		return store.Record{}, fmt.Errorf("key %s is neither destroyed nor in Vault's form of a ciphertext", id)
	default:
		r.Wrapped = []byte(d.Wrapped)
	}
	return r, nil
}

func isWrapped(text string) bool {
	return strings.HasPrefix(text, "vault:v") && len(text) <= maxWrapped
}

// head is what a head document says.
type head struct {
	version int // of the document; 0 when there is none
	page    int
	current store.Record
}

func (d headDocument) head(version int, scope string) (head, error) {
	if d.Scope != scope {
		return head{}, fmt.Errorf("it is of scope %q", d.Scope)
	}
	if d.Page < 1 || d.Page > maxPages {
		return head{}, fmt.Errorf("page %d", d.Page)
	}
	current, err := d.Current.record(scope)
	if err == nil && current.IsDestroyed() {
		err = fmt.Errorf("its current key %s is destroyed", current.ID)
	}
	return head{version, d.Page, current}, err
}

// page is what a page document says.
type page struct {
	version int
	keys    []store.Record
}

func (p page) full() bool { return len(p.keys) >= pageSize }

func (d pageDocument) page(version int, scope string) (page, error) {
	if d.Scope != scope {
		return page{}, fmt.Errorf("it is of scope %q", d.Scope)
	}
	if len(d.Keys) == 0 || len(d.Keys) > pageSize {
		return page{}, fmt.Errorf("it has %d keys", len(d.Keys))
	}
	keys := make([]store.Record, len(d.Keys))
	for i, k := range d.Keys {
		var err error
		if keys[i], err = k.record(scope); err != nil {
			return page{}, err
		}
	}
	return page{version, keys}, nil
}

func (p page) document(scope string) pageDocument {
	d := pageDocument{Scope: scope, Keys: make([]keyDocument, len(p.keys))}
	for i, r := range p.keys {
		d.Keys[i] = documentOf(r)
	}
	return d
}

// checkScope is for scopes that come from Vault.
func checkScope(scope, name string) error {
	if err := names.CheckTopic(scope); err != nil {
		return err
	}
	if nameOf(scope) != name {
		return fmt.Errorf("the document %s is of scope %q", name, scope)
	}
	return nil
}
