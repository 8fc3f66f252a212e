// The embedded CA is a document of the embedded store, which is encrypted under the store's KEK and rewrapped with it.

package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const documentKind, documentKey = "ca", "embedded"

// Embedded is a CA in a store. Safe for concurrent use.
type Embedded struct {
	documents store.Documents
	state     atomic.Pointer[state]
	seen      atomic.Pointer[[sha256.Size]byte]
}

// storedCA is one CA in the document.
type storedCA struct {
	Certificate []byte    `json:"certificate"`   // DER
	Key         []byte    `json:"key,omitempty"` // PKCS #8
	Since       time.Time `json:"since"`
}

type storedState struct {
	Current  storedCA  `json:"current"`
	Next     *storedCA `json:"next,omitempty"`
	Previous *storedCA `json:"previous,omitempty"`
}

// Open reads the CA of a store. A store that never had one gets one.
func Open(ctx context.Context, documents store.Documents) (*Embedded, error) {
	e := &Embedded{documents: documents}
	err := e.change(ctx, func(s *state) (err error) {
		if s.current == nil {
			s.current, err = newAuthority(time.Now())
			return err
		}
		return errUnchanged
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return nil, err
	}
	_, err = e.Reload(ctx)
	return e, err
}

var errUnchanged = errors.New("nothing is to be changed")

// Reload implements Signer.
func (e *Embedded) Reload(ctx context.Context) (changed bool, err error) {
	data, _, err := e.documents.ReadDocument(ctx, documentKind, documentKey)
	if err != nil {
		return false, err
	}
	defer clear(data)
	sum := sha256.Sum256(data)
	if seen := e.seen.Load(); seen != nil && *seen == sum {
		return false, nil
	}
	s, err := decode(data)
	if err != nil {
		return false, err
	}
	e.state.Store(s)
	e.seen.Store(&sum)
	return true, nil
}

// Begin adds the next CA, which is trusted from now on.
func (e *Embedded) Begin(ctx context.Context) error {
	return e.change(ctx, func(s *state) error { return s.begin(time.Now()) })
}

// Finish lets the next CA sign.
func (e *Embedded) Finish(ctx context.Context, force bool) error {
	return e.change(ctx, func(s *state) error { return s.finish(time.Now(), force) })
}

const maxTries = 16

// change replaces the document, and looks again when somebody else did meanwhile.
func (e *Embedded) change(ctx context.Context, do func(*state) error) error {
	for range maxTries {
		if err := e.tryChange(ctx, do); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%w: others change the CA at the same time", ErrRollover)
}

func (e *Embedded) tryChange(ctx context.Context, do func(*state) error) error {
	data, version, err := e.documents.ReadDocument(ctx, documentKind, documentKey)
	if err != nil {
		return err
	}
	s := &state{}
	if version > 0 {
		if s, err = decode(data); err != nil {
			return err
		}
	}
	clear(data)
	if err := do(s); err != nil {
		return err
	}
	fresh, err := s.encode()
	if err != nil {
		return err
	}
	defer clear(fresh)
	if err := e.documents.WriteDocument(ctx, documentKind, documentKey, version, fresh); err != nil {
		return err
	}
	_, err = e.Reload(ctx)
	return err
}

func (s *state) encode() ([]byte, error) {
	current, err := s.current.encode()
	if err != nil {
		return nil, err
	}
	stored := storedState{Current: *current}
	if stored.Next, err = s.next.encode(); err != nil {
		return nil, err
	}
	if stored.Previous, err = s.previous.encode(); err != nil {
		return nil, err
	}
	return json.Marshal(stored)
}

// encode gives nil for nil.
func (a *authority) encode() (stored *storedCA, err error) {
	if a == nil {
		return nil, nil
	}
	stored = &storedCA{Certificate: a.certificate.Raw, Since: a.since.UTC()}
	if a.key != nil {
		stored.Key, err = x509.MarshalPKCS8PrivateKey(a.key)
	}
	return stored, err
}

func decode(data []byte) (*state, error) {
	var stored storedState
	if err := json.Unmarshal(data, &stored, json.RejectUnknownMembers(true)); err != nil {
		return nil, errors.New("the CA in the store is damaged: restore the store from a backup")
	}
	s := &state{}
	var err error
	if s.current, err = stored.Current.decode(true); err != nil {
		return nil, err
	}
	if stored.Next != nil {
		if s.next, err = stored.Next.decode(true); err != nil {
			return nil, err
		}
	}
	if stored.Previous != nil {
		s.previous, err = stored.Previous.decode(false)
	}
	return s, err
}

func (c *storedCA) decode(signs bool) (*authority, error) {
	certificate, err := x509.ParseCertificate(c.Certificate)
	if err != nil || !certificate.IsCA {
		return nil, errors.New("the CA in the store is damaged: it has no CA certificate where one should be")
	}
	a := &authority{certificate: certificate, since: c.Since}
	if !signs {
		return a, nil
	}
	defer clear(c.Key)
	key, err := x509.ParsePKCS8PrivateKey(c.Key)
	ec, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok || !ec.PublicKey.Equal(certificate.PublicKey) {
		return nil, fmt.Errorf("the CA in the store is damaged: the key of %s does not fit its certificate", certificate.Subject)
	}
	a.key = ec
	return a, nil
}
