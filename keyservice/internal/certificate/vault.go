// Certificates from Vault's PKI engine. Vault keeps the CA and rolls it over; every CA of the mount is trusted.

package certificate

import (
	"context"
	"crypto/x509"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
)

// Vault signs by a role of a PKI engine. Safe for concurrent use.
type Vault struct {
	pki    *vault.PKI
	cas    atomic.Pointer[[]*x509.Certificate]
	looked atomic.Int64 // when CAs were read, in Unix seconds
}

var _ Signer = (*Vault)(nil)

// caInterval is how long a CA of the mount may go unnoticed.
const caInterval = 30 * time.Second

// OpenVault reads the CAs of the mount.
func OpenVault(ctx context.Context, pki *vault.PKI) (*Vault, error) {
	v := &Vault{pki: pki}
	_, err := v.Reload(ctx)
	return v, err
}

// Reload implements Signer.
func (v *Vault) Reload(ctx context.Context) (changed bool, err error) {
	now := time.Now().Unix()
	if now-v.looked.Load() < int64(caInterval/time.Second) {
		return false, nil
	}
	v.looked.Store(now)
	cas, err := v.pki.CAs(ctx)
	if err != nil {
		return false, err
	}
	before := v.cas.Swap(&cas)
	return before == nil || !slices.EqualFunc(*before, cas, (*x509.Certificate).Equal), nil
}

// CAs implements Signer.
func (v *Vault) CAs() []*x509.Certificate { return *v.cas.Load() }

// Sign implements Signer.
func (v *Vault) Sign(ctx context.Context, r *Request, lifetime time.Duration) ([]*x509.Certificate, error) {
	own := namesOf(r.Principal)
	request := vault.SignRequest{CSR: string(r.PEM), CommonName: own.commonName, Lifetime: lifetime, DNSNames: r.DNSNames, Addresses: r.Addresses}
	if own.uri != nil {
		request.URI = own.uri.String()
	}
	return v.pki.Sign(ctx, request)
}
