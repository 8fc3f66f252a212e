// Package store says what the key service needs of a place that keeps wrapped data keys. Backends stand in folders
// below.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

// ErrUnavailable is in every error that may pass by itself: the backend cannot be reached or is not ready.
var ErrUnavailable = errors.New("the key store is not available now")

// Record is a data key as it is kept: wrapped under a KEK. Its scope never changes [CL-POL-006].
type Record struct {
	ID      datakey.ID
	Scope   string
	Created time.Time // whole milliseconds
	Wrapped []byte
}

// Store keeps data keys. All methods are safe for concurrent use and end with ctx as far as the backend allows.
type Store interface {
	// Current gives the scope's current key and makes it when there is none. Calls at the same time, also from
	// several replicas, get the same one [CL-API-011]. What is returned is on disk, synced [CL-API-017].
	Current(ctx context.Context, scope string) (Record, error)

	// Rotate makes a new key for the scope, on disk and current when it returns.
	Rotate(ctx context.Context, scope string) (Record, error)

	// Lookup finds keys by id without unwrapping them. scope is where they are expected, and only tells a backend where
	// to look first: keys of other scopes are found too. An id that is not known is not in the answer.
	Lookup(ctx context.Context, scope string, ids []datakey.ID) (map[datakey.ID]Record, error)

	// Unwrap decrypts keys, in the order of the records. The caller wipes them.
	Unwrap(ctx context.Context, records []Record) ([]*datakey.Key, error)

	// Currents lists the current keys of all scopes.
	Currents(ctx context.Context) ([]Record, error)

	// Check tells whether keys can be read and unwrapped now.
	Check(ctx context.Context) error

	// Close releases the store. No other method may be called after it.
	Close() error
}
