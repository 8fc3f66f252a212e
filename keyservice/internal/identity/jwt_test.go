// JWTs, good and bad, signed here with keys made here.

package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

const alice = "spiffe://example.org/alice"

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// issuer has a key of each kind.
type issuer struct {
	ec, foreign *ecdsa.PrivateKey
	ed          ed25519.PrivateKey
	rsa         *rsa.PrivateKey
}

func newIssuer() *issuer {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	return &issuer{
		ec: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), foreign: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		ed: must(ed, err), rsa: must(rsa.GenerateKey(rand.Reader, 2048)),
	}
}

func public(key crypto.Signer, kid, algorithm, use string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: algorithm, Use: use}
}

func (i *issuer) set() []jose.JSONWebKey {
	return []jose.JSONWebKey{public(i.ec, "ec", "ES256", "sig"), public(i.ed, "ed", "", ""), public(i.rsa, "rsa", "", "sig"), public(i.foreign, "enc", "", "enc")}
}

func encodeSet(keys []jose.JSONWebKey) []byte {
	return must(json.Marshal(jose.JSONWebKeySet{Keys: keys}))
}

func sign(algorithm jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	options := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options))
	return must(jwt.Signed(signer).Claims(claims).Serialize())
}

// claimsWith gives good claims with some changed; nil removes one.
func claimsWith(changes map[string]any) map[string]any {
	now := time.Now().Unix()
	all := map[string]any{"iss": "https://issuer", "aud": []string{"other", "cipherlane"}, "sub": alice, "exp": now + 300, "iat": now - 1, "team": "a"}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

func optionsFor(t testing.TB, keys []byte) JWTOptions {
	t.Helper()
	o := JWTDefaults()
	o.Issuer, o.Audience, o.Principals = "https://issuer", "cipherlane", []string{"spiffe://example.org/**", "batch-*"}
	o.File = filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(o.File, keys, 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

func verifier(t testing.TB, keys []jose.JSONWebKey) *JWT {
	t.Helper()
	j, err := NewJWT(optionsFor(t, encodeSet(keys)), quiet())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// [CL-IDN-002] [CL-IDN-004]
func TestGoodJWTs(t *testing.T) {
	i := newIssuer()
	j := verifier(t, i.set())
	for name, text := range map[string]string{
		"ES256":       sign(jose.ES256, i.ec, "ec", claimsWith(nil)),
		"EdDSA":       sign(jose.EdDSA, i.ed, "ed", claimsWith(nil)),
		"RS256":       sign(jose.RS256, i.rsa, "rsa", claimsWith(nil)),
		"PS256":       sign(jose.PS256, i.rsa, "rsa", claimsWith(nil)),
		"one aud":     sign(jose.ES256, i.ec, "ec", claimsWith(map[string]any{"aud": "cipherlane"})),
		"just over":   sign(jose.ES256, i.ec, "ec", claimsWith(map[string]any{"exp": time.Now().Unix() - 20})),
		"just before": sign(jose.ES256, i.ec, "ec", claimsWith(map[string]any{"nbf": time.Now().Unix() + 20})),
	} {
		who, err := j.Verify(t.Context(), text, time.Now())
		if err != nil || who.Principal != alice || who.Claims["team"] != "a" {
			t.Errorf("%s: %+v %v", name, who, err)
		}
	}
	alone := verifier(t, i.set()[:1])
	if who, err := alone.Verify(t.Context(), sign(jose.ES256, i.ec, "", claimsWith(map[string]any{"sub": "batch-7"})), time.Now()); err != nil || who.Principal != "batch-7" {
		t.Error(who, err)
	}
}

func withHeader(text, header string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + text[strings.IndexByte(text, '.'):]
}

// publicPEM is what a careless verifier would take for the secret of an HMAC.
func publicPEM(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: key.N.Bytes()})
}

// [CL-IDN-002] [CL-IDN-003] [CL-IDN-004]
func TestBadJWTs(t *testing.T) {
	i := newIssuer()
	j := verifier(t, i.set())
	now := time.Now().Unix()
	ec := func(changes map[string]any) string { return sign(jose.ES256, i.ec, "ec", claimsWith(changes)) }
	good := ec(nil)
	parts := strings.Split(good, ".")
	for name, text := range map[string]string{
		"empty":                  "",
		"not a JWT":              "abc",
		"two parts":              parts[0] + "." + parts[1],
		"no signature":           parts[0] + "." + parts[1] + ".",
		"alg none":               base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"ec"}`)) + "." + parts[1] + ".",
		"alg None":               withHeader(good, `{"alg":"None","kid":"ec"}`),
		"another header":         withHeader(good, `{"alg":"ES256","kid":"ec","x":1}`),
		"HS256, public key":      sign(jose.HS256, publicPEM(i.rsa), "rsa", claimsWith(nil)),
		"HS256, key of JWKS":     sign(jose.HS256, must(public(i.rsa, "rsa", "", "").MarshalJSON()), "rsa", claimsWith(nil)),
		"wrong key":              sign(jose.ES256, i.foreign, "ec", claimsWith(nil)),
		"key of another kid":     sign(jose.ES256, i.ec, "rsa", claimsWith(nil)),
		"unknown kid":            sign(jose.ES256, i.ec, "none", claimsWith(nil)),
		"no kid":                 sign(jose.ES256, i.ec, "", claimsWith(nil)),
		"key for encryption":     sign(jose.ES256, i.foreign, "enc", claimsWith(nil)),
		"algorithm not chosen":   sign(jose.RS512, i.rsa, "rsa", claimsWith(nil)),
		"key in the header":      withHeader(good, `{"alg":"ES256","jwk":`+string(must(public(i.ec, "", "", "").MarshalJSON()))+`}`),
		"unknown crit":           withHeader(good, `{"alg":"ES256","kid":"ec","crit":["x"],"x":1}`),
		"expired":                ec(map[string]any{"exp": now - 31}),
		"one hour ago":           ec(map[string]any{"exp": now - 3600, "iat": now - 7200}),
		"no exp":                 ec(map[string]any{"exp": nil}),
		"exp as text":            ec(map[string]any{"exp": "tomorrow"}),
		"not yet":                ec(map[string]any{"nbf": now + 40}),
		"issued in the future":   ec(map[string]any{"iat": now + 3600}),
		"wrong audience":         ec(map[string]any{"aud": "others"}),
		"no audience":            ec(map[string]any{"aud": nil}),
		"wrong issuer":           ec(map[string]any{"iss": "https://issuer/"}),
		"no issuer":              ec(map[string]any{"iss": nil}),
		"no principal":           ec(map[string]any{"sub": nil}),
		"principal as list":      ec(map[string]any{"sub": []string{alice}}),
		"empty principal":        ec(map[string]any{"sub": ""}),
		"principal not allowed":  ec(map[string]any{"sub": "spiffe://example.com/alice"}),
		"operator not allowed":   ec(map[string]any{"sub": "operator"}),
		"malformed SPIFFE id":    ec(map[string]any{"sub": "spiffe://example.org/a//b"}),
		"URI":                    ec(map[string]any{"sub": "https://example.org/alice"}),
		"principal with newline": ec(map[string]any{"sub": "batch-\n"}),
		"too long":               ec(map[string]any{"x": strings.Repeat("x", 8<<10)}),
		"encrypted":              encrypted(i),
	} {
		who, err := j.Verify(t.Context(), text, time.Now())
		if r, ok := errors.AsType[*refusal.Error](err); !ok || r.Code != refusal.Unauthenticated || who.Principal != "" {
			t.Errorf("%s: %+v %v", name, who, err)
		}
		if err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the token stands in the error", name)
		}
	}
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		if who, err := j.Verify(t.Context(), good, time.Now().Add(off)); err == nil {
			t.Errorf("a clock %s off: %+v", off, who)
		}
	}
}

func encrypted(i *issuer) string {
	encrypter := must(jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.RSA_OAEP_256, Key: &i.rsa.PublicKey, KeyID: "rsa"}, nil))
	return must(jwt.Encrypted(encrypter).Claims(claimsWith(nil)).Serialize())
}
