// Making and opening the store. Nothing is made by opening: a store that went missing must not silently become an empty
// one.

package vault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// ErrMissing says that there is no store at the place given.
var ErrMissing = errors.New("the key store is missing")

// Open logs in and opens a store that Init made.
func Open(ctx context.Context, o Options, log *slog.Logger) (*Store, error) {
	s, err := connect(ctx, o, log)
	if err != nil {
		return nil, err
	}
	if err := s.Check(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Init makes an empty store. It refuses where one is, or where its keys are.
func Init(ctx context.Context, o Options, log *slog.Logger) (err error) {
	s, err := connect(ctx, o, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if others, err := s.kv.list(ctx, scopesDir); err != nil || len(others) > 0 {
		return errors.Join(err, fmt.Errorf("vault: %s has the keys of %d scopes: a store is made only where there is none", s.kv.dataPath(scopesDir), len(others)))
	}
	check, key, err := s.newRecord(ctx, "", metaKEK)
	if err != nil {
		return err
	}
	key.Wipe()
	_, err = s.kv.write(ctx, metaName, 0, metaDocument{Format: metaFormat, Check: documentOf(check)})
	if reasonOf(err) == Conflict {
		return fmt.Errorf("vault: %s exists: a store is made only where there is none", s.kv.dataPath(metaName))
	}
	return err
}

func connect(ctx context.Context, o Options, log *slog.Logger) (*Store, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	c := &client{timeout: o.Timeout}
	if c.api, err = newAPI(o, transport); err != nil {
		return nil, err
	}
	entry, err := newAPI(o, transport)
	if err != nil {
		return nil, err
	}
	if c.session, err = newSession(ctx, c.api, entry, o, log); err != nil {
		return nil, err
	}
	s := newStore(c, o, transport)
	if err := s.kv.checkMount(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newStore(c *client, o Options, transport *endpoints) *Store {
	running, stop := context.WithCancel(context.Background())
	s := &Store{
		client:     c,
		kv:         &kv{client: c, mount: o.KV, folder: o.Path},
		transit:    &transit{client: c, mount: o.Transit, create: o.CreateKEKs},
		ttl:        o.Cache.TTL,
		revoke:     o.Login.Token == nil,
		transport:  transport,
		scopes:     newScopes(),
		pages:      newExpiring[pageID](o.Cache.TTL, maxPagesHeld, func(found) {}),
		keys:       newExpiring[keyID](o.Cache.TTL, o.Cache.Keys, (*datakey.Key).Wipe),
		everywhere: newTurn(),
		stop:       stop,
	}
	s.sweeper.Go(func() { s.sweep(running) })
	return s
}

// Check implements store.Store: Vault answers, the token is good, and KV and KEKs belong together.
func (s *Store) Check(ctx context.Context) error {
	meta, err := s.readMeta(ctx)
	if err != nil {
		return err
	}
	r, err := meta.Check.record("")
	if err != nil {
		return damaged("GET "+s.kv.dataPath(metaName), "%v", err)
	}
	keys, err := s.transit.unwrap(ctx, metaKEK, []store.Record{r})
	wipeKeys(keys)
	return err
}

func (s *Store) readMeta(ctx context.Context) (metaDocument, error) {
	var meta metaDocument
	_, err := s.kv.read(ctx, metaName, &meta)
	switch {
	case errors.Is(err, errAbsent):
		return meta, fmt.Errorf("%w: there is no %s in Vault. Restore a snapshot; for a new, empty store run: "+
			"cipherlane-keyservice init --config FILE", ErrMissing, s.kv.dataPath(metaName))
	case err != nil:
		return meta, err
	case meta.Format != metaFormat:
		return meta, damaged("GET "+s.kv.dataPath(metaName), "it is not a store of this version of cipherlane-keyservice")
	default:
		return meta, nil
	}
}
