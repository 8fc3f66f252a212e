// The token: had by logging in, renewed until that is not possible any more, then had anew.

package vault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
)

// errTokenValid says that a refusal was not the token's fault.
var errTokenValid = errors.New("the token is valid")

const (
	maxLoginWait  = 30 * time.Second
	revokeTimeout = 2 * time.Second
	minWatch      = time.Second // a token that is about to end anyway must not make a busy loop
)

// session keeps the client's token valid. Safe for concurrent use.
type session struct {
	api     *api.Client // whose token this is
	entry   *api.Client // to log in with: an old token that expired would be refused first
	method  method
	timeout time.Duration
	log     *slog.Logger

	turn  chan struct{} // held while logging in
	fresh chan *api.Secret
	stop  context.CancelFunc
	done  sync.WaitGroup
	once  sync.Once
}

// newSession logs in and goes on renewing until close.
func newSession(ctx context.Context, c, entry *api.Client, o Options, log *slog.Logger) (*session, error) {
	running, stop := context.WithCancel(context.Background())
	s := &session{
		api: c, entry: entry, method: o.Login.method(), timeout: o.Timeout, log: log,
		turn: make(chan struct{}, 1), fresh: make(chan *api.Secret, 1), stop: stop,
	}
	if err := s.login(ctx); err != nil {
		stop()
		return nil, err
	}
	s.done.Go(func() { s.keep(running) })
	return s, nil
}

// close ends renewing and, if asked, gives the token back. That it may fail is no matter: the token ends by itself.
func (s *session) close(revoke bool) { s.once.Do(func() { s.end(revoke) }) }

func (s *session) end(revoke bool) {
	s.stop()
	s.done.Wait()
	if revoke {
		ctx, cancel := context.WithTimeout(context.Background(), revokeTimeout)
		defer cancel()
		if err := s.api.Auth().Token().RevokeSelfWithContext(ctx, ""); err != nil {
			s.log.Warn("the Vault token was not given back", "error", classify("revoke the token", err))
		}
	}
	s.api.ClearToken()
	s.entry.ClearToken()
}

// login gets a new token. One at a time: callers hold the turn.
func (s *session) login(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var secret *api.Secret
	err := persist(ctx, func() (err error) {
		s.entry.ClearToken()
		secret, err = s.method.login(ctx, s.entry)
		return err
	})
	if err != nil {
		return fmt.Errorf("vault: login: %w", err)
	}
	s.api.SetToken(secret.Auth.ClientToken)
	select { // only the newest token is worth renewing
	case <-s.fresh:
	default:
	}
	s.fresh <- secret
	s.log.Info("logged in to Vault", "lifetime", (time.Duration(secret.Auth.LeaseDuration) * time.Second).String(), "renewable", secret.Auth.Renewable)
	return nil
}

// replace logs in again if the token that was refused is still the one in use and no longer valid. It gives
// errTokenValid when the token is good and only lacks a permission.
func (s *session) replace(ctx context.Context, refused string) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.api.Token() != refused {
		return nil
	}
	err := persist(ctx, func() error {
		_, err := s.api.Auth().Token().LookupSelfWithContext(ctx)
		if err != nil {
			return classify("look up the token", err)
		}
		return nil
	})
	switch {
	case err == nil:
		return errTokenValid
	case reasonOf(err) != Denied:
		return err
	default:
		s.log.Warn("Vault does not know the token any more; logging in again")
		return s.login(ctx)
	}
}

// keep renews each token, and logs in again when one ends.
func (s *session) keep(ctx context.Context) {
	var secret *api.Secret
	for ctx.Err() == nil {
		if secret == nil {
			select {
			case <-ctx.Done():
				return
			case secret = <-s.fresh:
			}
		}
		start := time.Now()
		if secret = s.renew(ctx, secret); secret == nil && ctx.Err() == nil {
			if time.Since(start) < minWatch {
				sleep(ctx, minWatch)
			}
			s.loginAgain(ctx)
		}
	}
}

// renew renews a token until it cannot be renewed any more, ctx ends, or there is a newer one, which it gives.
func (s *session) renew(ctx context.Context, secret *api.Secret) *api.Secret {
	var ended <-chan error // of a token that never ends: nil, never ready
	if secret.Auth.LeaseDuration > 0 {
		watcher, err := s.api.NewLifetimeWatcher(&api.LifetimeWatcherInput{Secret: secret})
		if err != nil {
			s.log.Error("the Vault token cannot be renewed", "error", err)
			return nil
		}
		go watcher.Start()
		defer watcher.Stop()
		ended = watcher.DoneCh()
	}
	select {
	case <-ctx.Done():
		return nil
	case newer := <-s.fresh:
		return newer
	case err := <-ended:
		s.log.Info("the Vault token is at its end", "error", err)
		return nil
	}
}

// loginAgain tries until it works, with ever longer pauses.
func (s *session) loginAgain(ctx context.Context) {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, maxLoginWait) {
		s.turn <- struct{}{}
		err := s.login(ctx)
		<-s.turn
		if err == nil {
			return
		}
		s.log.Error("the Vault token ends and no new one can be had", "error", err, "next_try_in", wait.String())
		sleep(ctx, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
