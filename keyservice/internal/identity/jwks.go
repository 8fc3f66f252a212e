// The keys that JWTs are verified with: from a file or an https address, bounded, read again while the service runs.

package identity

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Limits of spec/limits.md.
const (
	maxJWKS      = 256 << 10 // bytes
	maxJWKSKeys  = 100
	minRSABits   = 2048
	fetchTimeout = 5 * time.Second
	// maxKeyAge is how long keys are believed that could not be read again.
	maxKeyAge = 24 * time.Hour
	// unknownKidPause is how long after one reading an unknown kid causes another.
	unknownKidPause = 10 * time.Second
)

var errUnknownKid = errors.New("no such key")

// keySource holds the keys read last. Safe for concurrent use.
type keySource struct {
	fetch   func(context.Context) ([]byte, error)
	refresh time.Duration
	log     *slog.Logger

	reading chan struct{} // held by the one that reads

	mu   sync.RWMutex
	keys []jose.JSONWebKey
	read time.Time // when keys were read
	last time.Time // when reading was tried
}

func newKeySource(o JWTOptions, log *slog.Logger) (*keySource, error) {
	k := &keySource{refresh: o.Refresh, log: log, reading: make(chan struct{}, 1)}
	if o.File != "" {
		k.fetch = func(context.Context) ([]byte, error) { return files.ReadTrusted(o.File, maxJWKS) }
		err := k.readAgain(context.Background(), time.Now())
		return k, err
	}
	client, err := newJWKSClient(o.CA)
	if err != nil {
		return nil, err
	}
	k.fetch = func(ctx context.Context) ([]byte, error) { return download(ctx, client, o.URL) }
	if err := k.readAgain(context.Background(), time.Now()); err != nil {
		log.Warn("the keys for JWTs cannot be read; callers with a JWT are refused until they can", "url", o.URL, "error", err)
	}
	return k, nil
}

// newJWKSClient follows no redirects [CL-IDN-006].
func newJWKSClient(ca string) (*http.Client, error) {
	pool, err := files.ReadCAs(ca)
	if err != nil {
		return nil, fmt.Errorf("jwt.ca: %w", err)
	}
	return &http.Client{
		Timeout:       fetchTimeout,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func download(ctx context.Context, client *http.Client, url string) (body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer has status %s", response.Status)
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, maxJWKS+1))
	if err == nil && len(body) > maxJWKS {
		err = fmt.Errorf("the answer has more than %d bytes", maxJWKS)
	}
	return body, err
}

// parseKeys takes a set of public keys, each with a kid of its own. One private or symmetric key makes all of it suspect.
func parseKeys(data []byte) ([]jose.JSONWebKey, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("it is not a JSON Web Key Set: %w", err)
	}
	if len(set.Keys) == 0 || len(set.Keys) > maxJWKSKeys {
		return nil, fmt.Errorf("it has %d keys that can be used, not 1 to %d", len(set.Keys), maxJWKSKeys)
	}
	seen := map[string]bool{}
	for i, key := range set.Keys {
		if !key.IsPublic() || !key.Valid() {
			return nil, fmt.Errorf("key %d is not a public key", i+1)
		}
		if public, ok := key.Key.(*rsa.PublicKey); ok && public.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("key %d has %d bits, fewer than %d", i+1, public.N.BitLen(), minRSABits)
		}
		if seen[key.KeyID] {
			return nil, fmt.Errorf("key %d has a kid that another one has", i+1)
		}
		seen[key.KeyID] = true
	}
	return set.Keys, nil
}

// readAgain reads the keys; when that fails, the old ones stay.
func (k *keySource) readAgain(ctx context.Context, now time.Time) error {
	data, err := k.fetch(ctx)
	var keys []jose.JSONWebKey
	if err == nil {
		keys, err = parseKeys(data)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = now
	if err != nil {
		return fmt.Errorf("keys for JWTs: %w", err)
	}
	k.keys, k.read = keys, now
	return nil
}

// find gives the key that a token names. Without a kid in the token, the set must have one key only.
func (k *keySource) find(ctx context.Context, kid string, now time.Time) (jose.JSONWebKey, error) {
	if err := k.keepFresh(ctx, now); err != nil {
		return jose.JSONWebKey{}, err
	}
	key, err := k.held(kid)
	if err == nil || !k.mayTryAgain(now, unknownKidPause) {
		return key, err
	}
	if err := k.turn(ctx, now); err != nil {
		return jose.JSONWebKey{}, err
	}
	return k.held(kid)
}

func (k *keySource) held(kid string) (jose.JSONWebKey, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if kid == "" && len(k.keys) == 1 {
		return k.keys[0], nil
	}
	for _, key := range k.keys {
		if kid != "" && key.KeyID == kid {
			return key, nil
		}
	}
	return jose.JSONWebKey{}, errUnknownKid
}

func (k *keySource) mayTryAgain(now time.Time, pause time.Duration) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return now.Sub(k.last) >= pause
}

// keepFresh reads the keys again when it is time to. Callers wait for that only when the old ones are not believed any more.
func (k *keySource) keepFresh(ctx context.Context, now time.Time) error {
	k.mu.RLock()
	age := now.Sub(k.read)
	k.mu.RUnlock()
	if age < k.refresh {
		return nil
	}
	if age < maxKeyAge {
		if k.mayTryAgain(now, min(k.refresh, unknownKidPause)) {
			go func() { _ = k.turn(context.WithoutCancel(ctx), now) }()
		}
		return nil
	}
	if k.mayTryAgain(now, time.Second) {
		_ = k.turn(ctx, now)
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	if now.Sub(k.read) >= maxKeyAge {
		return refusal.New(refusal.Unavailable, "the keys that JWTs are verified with cannot be read now")
	}
	return nil
}

// turn reads the keys again, unless somebody else just did.
func (k *keySource) turn(ctx context.Context, now time.Time) error {
	select {
	case k.reading <- struct{}{}:
		defer func() { <-k.reading }()
	case <-ctx.Done():
		return refusal.Because(refusal.Unavailable, ctx.Err(), "the keys that JWTs are verified with could not be read in time")
	}
	if !k.mayTryAgain(now, time.Millisecond) {
		return nil
	}
	if err := k.readAgain(ctx, now); err != nil {
		k.log.Warn("the keys for JWTs could not be read again; the old ones stay", "error", err)
	}
	return nil
}
