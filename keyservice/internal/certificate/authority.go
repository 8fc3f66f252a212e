// The CA that signs, the one before, and the one to come.
//
// Rollover: Begin makes the next CA, which is trusted from then on but does not sign. When everybody has had time to
// learn of it, Finish makes it sign; the one before is trusted until its last certificate has ended [CL-IDN-024].

package certificate

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// CALife is how long a CA holds. It should be rolled over in time: a certificate cannot end later than its CA.
const CALife = 5 * 365 * 24 * time.Hour

// Overlap is how long a CA is trusted before it signs, and after it has ended to: the longest life of a certificate, and
// a day.
const Overlap = policy.MaxLifetime + 24*time.Hour

// ErrRollover says that a step of a rollover is not possible now.
var ErrRollover = errors.New("the CA cannot be rolled over now")

// authority is one CA.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer // nil: it signs no more
	since       time.Time     // when it got the state that it has
}

// state is what the document says.
type state struct {
	current  *authority
	next     *authority // nil: no rollover has begun
	previous *authority // nil: none is trusted any more
}

// newAuthority makes a CA that may sign leaves only. Its name is the moment, to the nanosecond: issuers are found by name, and two CAs
// may be made within a second.
func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Cipherlane CA " + now.UTC().Format("2006-01-02T15:04:05.000000000Z")},
		NotBefore: now.Add(-Backdate), NotAfter: now.Add(CALife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key, now}, err
}

// sign makes a certificate for a request. It does not end later than the CA.
func (a *authority) sign(r *Request, lifetime time.Duration, now time.Time) (*x509.Certificate, error) {
	own := namesOf(r.Principal)
	end := now.Add(lifetime)
	if end.After(a.certificate.NotAfter) {
		end = a.certificate.NotAfter
	}
	if !now.Before(end) {
		return nil, fmt.Errorf("the CA has ended at %s: roll it over (cipherlane ca begin)", a.certificate.NotAfter)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: own.commonName}, URIs: own.uris(), DNSNames: r.DNSNames, IPAddresses: r.ips(),
		NotBefore: now.Add(-Backdate), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: r.uses(), BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, r.publicKey, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// trusted gives the certificates to trust at a time, the signing one first.
func (s *state) trusted(now time.Time) []*x509.Certificate {
	all := []*x509.Certificate{s.current.certificate}
	if s.next != nil {
		all = append(all, s.next.certificate)
	}
	if s.previous != nil && now.Sub(s.previous.since) < Overlap {
		all = append(all, s.previous.certificate)
	}
	return all
}

// begin adds the next CA.
func (s *state) begin(now time.Time) (err error) {
	if s.next != nil {
		return fmt.Errorf("%w: a rollover began at %s: finish it first", ErrRollover, s.next.since.UTC().Format(time.RFC3339))
	}
	s.next, err = newAuthority(now)
	return err
}

// finish lets the next CA sign. Unless forced, it must have been trusted for the overlap.
func (s *state) finish(now time.Time, force bool) error {
	if s.next == nil {
		return fmt.Errorf("%w: none has begun", ErrRollover)
	}
	if ready := s.next.since.Add(Overlap); now.Before(ready) && !force {
		return fmt.Errorf("%w: the next CA is trusted since %s: those who have certificates may not know it before %s. Wait, or force it if all do",
			ErrRollover, s.next.since.UTC().Format(time.RFC3339), ready.UTC().Format(time.RFC3339))
	}
	s.previous = &authority{certificate: s.current.certificate, since: now}
	s.current, s.next = &authority{s.next.certificate, s.next.key, now}, nil
	return nil
}

var _ Signer = (*Embedded)(nil)

// Sign implements Signer.
func (e *Embedded) Sign(_ context.Context, r *Request, lifetime time.Duration) ([]*x509.Certificate, error) {
	leaf, err := e.state.Load().current.sign(r, lifetime, time.Now())
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{leaf}, nil
}

// CAs implements Signer.
func (e *Embedded) CAs() []*x509.Certificate { return e.state.Load().trusted(time.Now()) }
