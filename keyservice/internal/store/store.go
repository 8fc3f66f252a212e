// Package store says what the key service needs of a place that keeps wrapped data keys. Backends stand in folders
// below.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

var (
	// ErrUnavailable is in every error that may pass by itself: the backend cannot be reached or is not ready.
	ErrUnavailable = errors.New("the key store is not available now")
	// ErrNoKey says that a scope has no such key.
	ErrNoKey = errors.New("the scope has no such key")
	// ErrCurrent says that a key cannot be destroyed because it is its scope's current one.
	ErrCurrent = errors.New("the key is the scope's current one")
	// ErrConflict says that a document was written by another meanwhile: read it again.
	ErrConflict = errors.New("the document was changed meanwhile")
)

// Record is a data key as it is kept: wrapped under a KEK. Its scope never changes [CL-POL-006].
type Record struct {
	ID        datakey.ID
	Scope     string
	Created   time.Time // whole milliseconds
	Destroyed time.Time // zero, or when the key was destroyed: then Wrapped is empty and stays so
	Wrapped   []byte
}

// IsDestroyed tells whether only the record of the key is left.
func (r Record) IsDestroyed() bool { return !r.Destroyed.IsZero() }

// Store keeps data keys. All methods are safe for concurrent use and end with ctx as far as the backend allows.
type Store interface {
	Keys
	Documents
	KEKs
	Tags

	// Check tells whether keys can be read and unwrapped now.
	Check(ctx context.Context) error

	// Close releases the store. No other method may be called after it.
	Close() error
}

// Keys are the data keys.
type Keys interface {
	// Current gives the scope's current key and makes it when there is none. Calls at the same time, also from
	// several replicas, get the same one [CL-API-011]. What is returned is on disk, synced [CL-API-017].
	Current(ctx context.Context, scope string) (Record, error)

	// Peek gives the scope's current key, or ErrNoKey: it makes none.
	Peek(ctx context.Context, scope string) (Record, error)

	// Rotate makes a new key for the scope, on disk and current when it returns.
	Rotate(ctx context.Context, scope string) (Record, error)

	// Replace makes a new current key in place of old, and gives the current key when that is another already: of many
	// callers and replicas that replace the same key one makes a new one.
	Replace(ctx context.Context, scope string, old datakey.ID) (Record, error)

	// Lookup finds keys by id without unwrapping them. scope is where they are expected, and only tells a backend where
	// to look first: keys of other scopes are found too, and destroyed ones. An id that is not known is not in the answer.
	Lookup(ctx context.Context, scope string, ids []datakey.ID) (map[datakey.ID]Record, error)

	// Unwrap decrypts keys, in the order of the records. The caller wipes them.
	Unwrap(ctx context.Context, records []Record) ([]*datakey.Key, error)

	// Currents lists the current keys of all scopes.
	Currents(ctx context.Context) ([]Record, error)

	// List gives up to limit keys of a scope in the order in which they were made, those behind after (the zero id:
	// from the first on; ErrNoKey when the scope does not have it). A scope that is not known has none.
	List(ctx context.Context, scope string, after datakey.ID, limit int) ([]Record, error)

	// Destroy takes keys of a scope away for good and leaves their records. Ids that are destroyed already are passed
	// over. ErrNoKey, ErrCurrent: nothing was destroyed.
	Destroy(ctx context.Context, scope string, ids []datakey.ID) error

	// Forget drops what is held in memory, so that what others destroyed is not given any more.
	Forget()
}

// MaxDocument is the size of the largest document in bytes: below what Vault's storage takes.
const MaxDocument = 384 << 10

// Documents are small documents of JSON that the key service keeps beside the keys, each with a version that grows
// when it is written: that is how replicas agree.
type Documents interface {
	// ReadDocument gives a document and its version: nil and 0 when it was never written. kind is a word of a-z and -,
	// key follows the rules of topic names.
	ReadDocument(ctx context.Context, kind, key string) (data []byte, version int, err error)

	// WriteDocument writes a document whose version is still the one given, else it fails with ErrConflict. On disk,
	// synced, when it returns. After an error that leaves open whether it was written, read it again.
	WriteDocument(ctx context.Context, kind, key string, version int, data []byte) error
}

// KEKs are the key-encryption keys, which have names and versions from 1 on.
type KEKs interface {
	// KEKNames lists them in order.
	KEKNames(ctx context.Context) ([]string, error)

	// KEKVersion gives the newest version of one.
	KEKVersion(ctx context.Context, name string) (int, error)

	// AdvanceKEK makes new versions of a KEK until there is one of the number given. Keys that are wrapped from then on
	// are wrapped under it.
	AdvanceKEK(ctx context.Context, name string, version int) error

	// Rewrap wraps everything under the newest version of a KEK that is not yet, and calls done after every batch with the
	// number of keys in it. It may be interrupted at any moment and repeated; every key can be read all the time.
	Rewrap(ctx context.Context, name string, done func(keys int)) error
}
