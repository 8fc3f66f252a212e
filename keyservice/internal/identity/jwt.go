// JWTs: signed by keys of a JWKS with a pinned algorithm, for this audience, from this issuer, and in time.

package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// JWTOptions say which JWTs are taken. Issuer, Audience, Principals and one of File and URL are required.
type JWTOptions struct {
	Issuer         string        // iss must be this
	Audience       string        // aud must hold this
	PrincipalClaim string        // names the principal
	Principals     []string      // patterns of the principals that the issuer may name
	Algorithms     []string      // of Algorithms
	Leeway         time.Duration // for clocks that differ, at most MaxLeeway
	File           string        // a JSON Web Key Set
	URL            string        // https, with CA
	CA             string        // PEM file that the URL's certificate must chain to
	Refresh        time.Duration // how old keys may be before they are read again
}

// Algorithms are those that can be chosen: signatures with a public key. Neither none nor HMAC is among them.
var Algorithms = []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}

// Limits of what can be set.
const (
	MaxLeeway  = time.Minute
	MinRefresh = time.Second
	MaxRefresh = time.Hour
	maxJWT     = 8 << 10 // bytes
)

// JWTDefaults hold where nothing is said.
func JWTDefaults() JWTOptions {
	return JWTOptions{PrincipalClaim: "sub", Algorithms: []string{"ES256", "EdDSA", "PS256", "RS256"}, Leeway: 30 * time.Second, Refresh: 5 * time.Minute}
}

// Check says what is missing or does not fit together.
func (o JWTOptions) Check() error {
	if slices.Contains([]string{o.Issuer, o.Audience, o.PrincipalClaim}, "") || len(o.Principals) == 0 || len(o.Algorithms) == 0 {
		return errors.New("issuer, audience, principals and algorithms are needed")
	}
	if (o.File == "") == (o.URL == "") || (o.URL == "") != (o.CA == "") {
		return errors.New("either jwks_file, or jwks_url with ca, is needed")
	}
	_, err := policy.NewPrincipals(o.Principals)
	return errors.Join(err, o.checkURL())
}

func (o JWTOptions) checkURL() error {
	u, err := url.Parse(o.URL)
	if o.URL != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil) {
		return fmt.Errorf("jwks_url: %q is not of the form https://host/path", o.URL)
	}
	return nil
}

// JWT verifies tokens. Safe for concurrent use.
type JWT struct {
	options    JWTOptions
	algorithms []jose.SignatureAlgorithm
	principals policy.Principals
	keys       *keySource
}

// NewJWT reads the keys. A file must be good; an address may become good later.
func NewJWT(o JWTOptions, log *slog.Logger) (*JWT, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	principals, err := policy.NewPrincipals(o.Principals)
	if err != nil {
		return nil, err
	}
	j := &JWT{options: o, principals: principals}
	for _, name := range o.Algorithms {
		j.algorithms = append(j.algorithms, jose.SignatureAlgorithm(name))
	}
	j.keys, err = newKeySource(o, log)
	return j, err
}

// Verify gives the principal and all claims of a token.
//
// Errors: unauthenticated, key-service-unavailable.
func (j *JWT) Verify(ctx context.Context, text string, now time.Time) (Identity, error) {
	if len(text) > maxJWT {
		return Identity{}, unauthenticated("the JWT has more than %d bytes", maxJWT)
	}
	parsed, err := jwt.ParseSigned(text, j.algorithms) // [CL-IDN-002]
	if err != nil {
		return Identity{}, because(err, "the bearer token is not a JWT that is signed by one of "+strings.Join(j.options.Algorithms, ", "))
	}
	header := parsed.Headers[0]
	key, err := j.keys.find(ctx, header.KeyID, now)
	if err != nil {
		if refused, ok := errors.AsType[*refusal.Error](err); ok {
			return Identity{}, refused
		}
		return Identity{}, because(err, "the JWT is signed by a key that the issuer does not publish")
	}
	if key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != header.Algorithm {
		return Identity{}, unauthenticated("the JWT is signed by a key that is not meant for that")
	}
	var standard jwt.Claims
	claims := map[string]any{}
	if err := parsed.Claims(key.Key, &standard, &claims); err != nil {
		return Identity{}, because(err, "the JWT's signature does not verify, or its claims are malformed")
	}
	if err := j.checkClaims(standard, now); err != nil {
		return Identity{}, err
	}
	return j.identify(claims)
}

// checkClaims holds the registered claims against what is expected [CL-IDN-003].
func (j *JWT) checkClaims(c jwt.Claims, now time.Time) error {
	if c.Expiry == nil {
		return unauthenticated("the JWT has no end (exp)")
	}
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: j.options.Issuer, AnyAudience: jwt.Audience{j.options.Audience}, Time: now}, j.options.Leeway)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return unauthenticated("the JWT has expired at %s", c.Expiry.Time().UTC().Format(time.RFC3339))
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return unauthenticated("the JWT is not valid yet: compare the clocks of issuer and key service")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return unauthenticated("the JWT is not for this service: its aud does not hold %q", j.options.Audience)
	case err != nil:
		return because(err, "the JWT is not from the issuer that this service trusts")
	}
	return nil
}

// identify takes the principal from its claim, if the issuer may name it [CL-IDN-004].
func (j *JWT) identify(claims map[string]any) (Identity, error) {
	name, ok := claims[j.options.PrincipalClaim].(string)
	if !ok {
		return Identity{}, unauthenticated("the JWT names nobody: its claim %s is not a text", j.options.PrincipalClaim)
	}
	if err := CheckName(name); err != nil {
		return Identity{}, unauthenticated("the claim %s of the JWT cannot be used: %v", j.options.PrincipalClaim, err)
	}
	if !j.principals.Match(name) {
		return Identity{}, unauthenticated("the issuer of the JWT may not name %q (jwt.principals)", name)
	}
	return Identity{Principal: name, Claims: claims}, nil
}

// CheckName says why a name cannot be that of a principal, or nil: a SPIFFE id that names a workload, or a common name.
func CheckName(name string) error {
	if err := names.CheckPrincipal(name); err != nil {
		return err
	}
	if !strings.Contains(name, "://") {
		return nil
	}
	id, err := spiffeid.FromString(name)
	if err == nil && id.Path() == "" {
		err = errors.New("its path is empty")
	}
	return err
}

func because(cause error, detail string) error {
	return refusal.Because(refusal.Unauthenticated, cause, detail)
}
