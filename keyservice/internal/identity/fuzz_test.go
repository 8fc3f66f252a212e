package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Whatever the text: a refusal, or the one principal that the issuer named. Key and time are the same in every process that fuzzes.
// [CL-IDN-002] [CL-IDN-003] [CL-IDN-004]
func FuzzJWT(f *testing.F) {
	seed := sha256.Sum256([]byte(f.Name()))
	key := ed25519.NewKeyFromSeed(seed[:])
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	claims := claimsWith(map[string]any{"iat": now.Unix() - 1, "exp": now.Unix() + 300})
	good := sign(jose.EdDSA, key, "ed", claims)
	for _, text := range []string{
		good, withHeader(good, `{"alg":"none"}`), withHeader(good, `{"alg":"HS256","kid":"ed"}`), good + ".", good[:len(good)-8], "", "..", "a.b.c",
		strings.ReplaceAll(good, ".", ".."), `{"payload":"","signatures":[]}`, `{"payload":"e30","protected":"","signature":""}`,
	} {
		f.Add(text)
	}
	j := verifier(f, []jose.JSONWebKey{public(key, "ed", "EdDSA", "sig")})
	f.Fuzz(func(t *testing.T, text string) {
		who, err := j.Verify(t.Context(), text, now)
		if err == nil {
			if who.Principal != alice || who.Claims["team"] != "a" {
				t.Fatalf("%+v", who)
			}
			return
		}
		refused, ok := errors.AsType[*refusal.Error](err)
		if !ok || refused.Code != refusal.Unauthenticated || who.Principal != "" || who.Claims != nil {
			t.Fatalf("%+v, %v", who, err)
		}
		if len(good) > 40 && strings.Contains(refused.Detail, good[len(good)-40:]) {
			t.Fatal("the refusal shows the token")
		}
	})
}
