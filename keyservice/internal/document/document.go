// Package document reads and changes the JSON documents that the key service keeps in its store, so that replicas that
// change the same one do not undo each other's work.
package document

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	maxAttempts = 16
	maxPause    = 50 * time.Millisecond
)

// ErrTooLarge says that a document would be larger than store.MaxDocument.
var ErrTooLarge = errors.New("the document would be too large")

// Read gives a document and its version: a zero value and 0 when it was never written. A member that is not known is an
// error: a newer service wrote it, and what it means must not be lost.
func Read[T any](ctx context.Context, from store.Documents, kind, key string) (document T, version int, err error) {
	data, version, err := from.ReadDocument(ctx, kind, key)
	if err != nil || version == 0 {
		return document, 0, err
	}
	if err := json.Unmarshal(data, &document, json.RejectUnknownMembers(true)); err != nil {
		return document, 0, fmt.Errorf("document %s/%s is not what this version of cipherlane-keyservice writes: %w", kind, key, err)
	}
	return document, version, nil
}

// Update reads a document, lets change alter it, and writes it, all of it again when another was faster. It gives what it
// wrote, or what it read when change returns Unchanged; any other error of change ends it and is returned.
func Update[T any](ctx context.Context, in store.Documents, kind, key string, change func(*T) error) (document T, version int, err error) {
	for attempt := 0; ; attempt++ {
		if document, version, err = Read[T](ctx, in, kind, key); err != nil {
			return document, 0, err
		}
		err = change(&document)
		if errors.Is(err, Unchanged) {
			return document, version, nil
		}
		if err == nil {
			err = write(ctx, in, kind, key, version, document)
		}
		if err == nil {
			return document, version + 1, nil
		}
		if !errors.Is(err, store.ErrConflict) || attempt == maxAttempts || !pause(ctx) {
			return document, 0, err
		}
	}
}

// Unchanged is what a change returns when there is nothing to write.
var Unchanged = errors.New("nothing to write") //nolint:errname,revive,staticcheck // it is no failure

func write(ctx context.Context, in store.Documents, kind, key string, version int, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("write document %s/%s: %w", kind, key, err)
	}
	if len(data) > store.MaxDocument {
		return fmt.Errorf("%s/%s: %w: %d bytes, at most %d", kind, key, ErrTooLarge, len(data), store.MaxDocument)
	}
	return in.WriteDocument(ctx, kind, key, version, data)
}

// pause waits a little, so that those who met do not meet again.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(rand.N(maxPause)) // #nosec G404 -- jitter
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
