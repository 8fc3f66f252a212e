// Who asks, by everything that a request shows: a client certificate, a JWT, a bootstrap token.

package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
)

// Identity is who asks, and what proves it.
type Identity struct {
	Principal   string
	Certificate *x509.Certificate // nil: none was shown
	Claims      map[string]any    // of the JWT; nil: none was shown
	Bootstrap   *token.Hash       // of the bootstrap token, which is not used up yet; nil: none was shown
}

// Verifier identifies callers. What is nil is not taken.
type Verifier struct {
	JWT    *JWT
	Tokens *token.Book
}

// Identify says who sends a request. bootstrap tells whether the call takes bootstrap tokens. The client certificate
// was verified in the handshake.
//
// Errors: unauthenticated, key-service-unavailable, and those of the store.
func (v *Verifier) Identify(ctx context.Context, r *http.Request, bootstrap bool) (Identity, error) {
	now := time.Now()
	byCertificate, err := fromTLS(r, now)
	if err != nil {
		return Identity{}, err
	}
	text, err := bearer(r)
	switch {
	case err != nil:
		return byCertificate, err
	case text == "" && byCertificate.Certificate == nil:
		return Identity{}, unauthenticated("neither a client certificate nor a token was shown")
	case text == "":
		return byCertificate, nil
	case strings.HasPrefix(text, token.Prefix):
		return v.byToken(ctx, text, bootstrap, byCertificate)
	case v.JWT == nil:
		return byCertificate, unauthenticated("this service takes no JWT: show a client certificate")
	}
	byJWT, err := v.JWT.Verify(ctx, text, now)
	if err != nil {
		return byCertificate, err
	}
	return join(byCertificate, byJWT)
}

// join takes a certificate and a JWT only if both name the same principal [CL-IDN-005].
func join(byCertificate, byJWT Identity) (Identity, error) {
	if byCertificate.Certificate != nil && byCertificate.Principal != byJWT.Principal {
		return byCertificate, unauthenticated("the client certificate and the JWT name different principals: show one of them, or make them agree")
	}
	byJWT.Certificate = byCertificate.Certificate
	return byJWT, nil
}

func fromTLS(r *http.Request, now time.Time) (Identity, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return Identity{}, nil
	}
	leaf := r.TLS.VerifiedChains[0][0]
	principal, err := FromCertificate(leaf, now)
	return Identity{Principal: principal, Certificate: leaf}, err
}

// bearer gives the one bearer token of a request, or "" [CL-IDN-001].
func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", nil
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || text == "" || strings.ContainsAny(text, " ,\t") {
		return "", unauthenticated("the header Authorization must be given once, as: Bearer TOKEN")
	}
	return text, nil
}

// byToken identifies by a bootstrap token, which is used up later, when everything else of the call is good.
func (v *Verifier) byToken(ctx context.Context, text string, bootstrap bool, shown Identity) (Identity, error) {
	hash, ok := token.Parse(text)
	switch {
	case v.Tokens == nil:
		return shown, unauthenticated("this service takes no bootstrap tokens")
	case shown.Certificate != nil:
		return shown, unauthenticated("a bootstrap token is for those who have no certificate yet: leave one of the two out")
	case !bootstrap:
		return Identity{}, unauthenticated("a bootstrap token serves for /v1/certificate only")
	case !ok:
		return Identity{}, unauthenticated("the bootstrap token is malformed")
	}
	found, err := v.Tokens.Find(ctx, hash)
	if errors.Is(err, token.ErrNone) {
		return Identity{}, NoSuchToken()
	}
	if err != nil {
		return Identity{}, err
	}
	return Identity{Principal: found.Principal, Bootstrap: &hash}, nil
}

// NoSuchToken refuses a bootstrap token that cannot be used, without saying why: unknown, ended and used look alike.
func NoSuchToken() *refusal.Error {
	return refusal.New(refusal.Unauthenticated, "the bootstrap token is not known, has ended, or was used: ask for a new one")
}
