// What a signer made, and the check that it is what was asked for.

package certificate

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
)

// Signer signs certificates. Safe for concurrent use.
type Signer interface {
	// Sign gives a chain from the leaf up, without the root. The caller checks it.
	Sign(ctx context.Context, r *Request, lifetime time.Duration) ([]*x509.Certificate, error)
	// CAs gives the certificates that clients and servers are to trust now: also one that does not sign yet, and one
	// that does not sign any more.
	CAs() []*x509.Certificate
	// Reload looks for changes of the CAs, and tells whether there were any. On an error the old ones stay.
	Reload(ctx context.Context) (changed bool, err error)
}

// Backdate allows for clocks of others that are behind.
const Backdate = 5 * time.Minute

// Issued is a certificate that may be handed out.
type Issued struct {
	Chain    []byte // PEM, leaf first
	CAs      []byte // PEM
	Serial   string // hexadecimal
	NotAfter time.Time
}

// Issue has a request signed, and hands on only what is exactly what was asked for [CL-IDN-023].
func Issue(ctx context.Context, s Signer, r *Request, lifetime time.Duration) (Issued, error) {
	now := time.Now()
	chain, err := s.Sign(ctx, r, lifetime)
	if err != nil {
		return Issued{}, err
	}
	cas := s.CAs()
	if err := check(chain, cas, r, now, lifetime); err != nil {
		return Issued{}, fmt.Errorf("the CA gave another certificate than was asked for: %w", err)
	}
	return Issued{PEM(chain), PEM(cas), fmt.Sprintf("%x", chain[0].SerialNumber), chain[0].NotAfter}, nil
}

// slack is how much later than asked a certificate may end: a CA's clock and rounding.
const slack = time.Minute

func check(chain, cas []*x509.Certificate, r *Request, now time.Time, lifetime time.Duration) error {
	if len(chain) == 0 {
		return errors.New("it is empty")
	}
	leaf := chain[0]
	if err := checkLeaf(leaf, r); err != nil {
		return err
	}
	if leaf.NotAfter.After(now.Add(lifetime + slack)) {
		return fmt.Errorf("it ends at %s, later than %s from now", leaf.NotAfter, lifetime)
	}
	principal, err := identity.FromCertificate(leaf, now)
	if err != nil || principal != r.Principal {
		return errors.Join(err, fmt.Errorf("it names %q", principal))
	}
	roots, intermediates := poolOf(cas), poolOf(chain[1:])
	for _, use := range r.uses() {
		_, wrong := leaf.Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use},
		})
		err = errors.Join(err, wrong)
	}
	return err
}

func checkLeaf(leaf *x509.Certificate, r *Request) error {
	key, ok := r.publicKey.(interface{ Equal(x crypto.PublicKey) bool })
	own := namesOf(r.Principal)
	switch {
	case !ok || !key.Equal(leaf.PublicKey):
		return errors.New("it is for another key")
	case leaf.IsCA:
		return errors.New("it is a CA")
	case len(leaf.EmailAddresses) > 0 || !r.sameServers(leaf) || len(leaf.URIs) != len(own.uris()):
		return errors.New("it has other alternative names")
	case leaf.Subject.CommonName != own.commonName || len(leaf.Subject.Names) != 1:
		return fmt.Errorf("its subject is %q", leaf.Subject)
	case !sameUses(leaf.ExtKeyUsage, r.uses()) || len(leaf.UnknownExtKeyUsage) > 0:
		return errors.New("it is for something else than TLS clients, and servers where names of one were asked for")
	case leaf.KeyUsage&^(x509.KeyUsageDigitalSignature|x509.KeyUsageKeyAgreement|x509.KeyUsageKeyEncipherment) != 0:
		return errors.New("its key may be used for more than TLS")
	}
	return nil
}

// sameUses tells whether two lists hold the same, in any order.
func sameUses(got, want []x509.ExtKeyUsage) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

func poolOf(all []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool
}

// PEM writes certificates one behind the other.
func PEM(all []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range all {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes everything
	}
	return out.Bytes()
}
