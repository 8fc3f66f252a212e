// Opening the store, and what is measured and traced.

package server

import (
	"context"
	"crypto/tls"
	"os"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/metrics"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
	"github.com/cipherlane/cipherlane/keyservice/internal/tracing"
)

// openStore is the one place that chooses a backend. A nil *embedded.Store must not become a non-nil store.Store.
func (s *Server) openStore() (store.Store, error) {
	if o := s.cfg.Store.Vault; o != nil {
		return s.openVault(*o)
	}
	opened, err := embedded.Open(embedded.Paths{Keys: s.cfg.Store.Embedded.Path, KEK: s.cfg.Store.Embedded.KEK})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func (s *Server) openVault(o vault.Options) (store.Store, error) {
	o.Observer, o.Wrap = s.metrics.VaultCalls(), s.tracer.Transport
	opened, err := vault.Open(context.Background(), o, s.log)
	if err != nil {
		return nil, err
	}
	s.metrics.WatchCache(func() metrics.Cached {
		hits, misses, held := opened.CacheCounts()
		return metrics.Cached{Hits: hits, Misses: misses, Held: held}
	})
	return opened, nil
}

// watchCertificate measures how long the server's certificate holds.
func (s *Server) watchCertificate(cfg *tls.Config) {
	for _, pair := range cfg.Certificates {
		if pair.Leaf != nil {
			s.metrics.WatchCertificate("server", pair.Leaf.NotAfter)
		}
	}
}

func (s *Server) startTracing() (err error) {
	cfg := s.cfg.Tracing
	if cfg.Endpoint == "" {
		return nil
	}
	o := tracing.Options{Endpoint: cfg.Endpoint, OneIn: cfg.OneIn}
	if cfg.CA != "" {
		roots, err := loadCAs("tracing CA", cfg.CA)
		if err != nil {
			return err
		}
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	if o.Instance, err = os.Hostname(); err != nil {
		return err
	}
	s.tracer, err = tracing.Start(context.Background(), o, s.log)
	return err
}

// traceTimeout bounds sending what is left at the end.
const traceTimeout = time.Second

func (s *Server) stopTracing() error {
	ctx, cancel := context.WithTimeout(context.Background(), traceTimeout)
	defer cancel()
	return s.tracer.Close(ctx)
}
