// Keys for trying decryption: asked for as a consumer does, many in one call, and again when their lease ended.

package scan

import (
	"context"
	"fmt"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

const maxKids = 1000 // of one call (spec/limits.md)

// KeyService is the part of its client that a scan needs.
type KeyService interface {
	Post(ctx context.Context, path string, in, out any) error
}

// keyring holds the keys of one topic.
type keyring struct {
	service KeyService
	topic   string
	keys    map[datakey.ID]*given
}

type given struct {
	scope string
	key   *datakey.Key
	err   error
	until time.Time // end of the lease
}

type answer struct {
	Keys []struct {
		Kid       string `json:"kid"`
		Scope     string `json:"scope"`
		Key       string `json:"key"`
		ExpiresIn int64  `json:"expires_in"`
		Error     *struct {
			Code   string `json:"code"`
			Detail string `json:"detail"`
		} `json:"error"`
	} `json:"keys"`
	ExpiresIn int64 `json:"expires_in"`
}

// want asks for those of the kids that are not there or whose lease ended.
func (r *keyring) want(ctx context.Context, kids map[datakey.ID]bool) error {
	now := time.Now()
	var missing []datakey.ID
	for kid := range kids {
		if k := r.keys[kid]; k == nil || now.After(k.until) {
			missing = append(missing, kid)
		}
	}
	for len(missing) > 0 {
		n := min(maxKids, len(missing))
		if err := r.ask(ctx, missing[:n], now); err != nil {
			return err
		}
		missing = missing[n:]
	}
	return nil
}

func (r *keyring) ask(ctx context.Context, kids []datakey.ID, now time.Time) error {
	var got answer
	if err := r.service.Post(ctx, "/v1/decryption-keys", map[string]any{"topic": r.topic, "kids": kidTexts(kids)}, &got); err != nil {
		return fmt.Errorf("keys of topic %s: %w", r.topic, err)
	}
	for _, kid := range kids {
		r.drop(kid)
		r.keys[kid] = &given{err: refusal.New("key-service-bad-answer", "no word about %s", kid), until: now}
	}
	for _, k := range got.Keys {
		kid, err := datakey.ParseID(k.Kid)
		if err != nil || r.keys[kid] == nil {
			return fmt.Errorf("keys of topic %s: the key service answered about a key that was not asked for", r.topic)
		}
		expires := k.ExpiresIn
		if k.Error != nil {
			expires = got.ExpiresIn
		}
		one := &given{scope: k.Scope, until: now.Add(time.Duration(expires) * time.Second)}
		if k.Error != nil {
			one.err = refusal.New(refusal.Code(k.Error.Code), "%s", k.Error.Detail)
		} else {
			one.key, one.err = keyclient.Receive(k.Key, kid)
		}
		r.keys[kid] = one
	}
	return nil
}

func (r *keyring) get(kid datakey.ID) (string, *datakey.Key, error) {
	k := r.keys[kid]
	return k.scope, k.key, k.err
}

func (r *keyring) drop(kid datakey.ID) {
	if k := r.keys[kid]; k != nil && k.key != nil {
		k.key.Wipe()
	}
	delete(r.keys, kid)
}

// wipe ends the ring.
func (r *keyring) wipe() {
	for kid := range r.keys {
		r.drop(kid)
	}
}

func kidTexts(kids []datakey.ID) []string {
	texts := make([]string, len(kids))
	for i, kid := range kids {
		texts[i] = kid.String()
	}
	return texts
}
