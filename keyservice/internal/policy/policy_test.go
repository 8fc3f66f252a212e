package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

const example = `version: 1
lease: {expires_in: 5m}
topics:
  - topics: ["claims", "claims.*"]
    mode: encrypt
    scope: claims
  - topics: ["public.*"]
    mode: clear
  - topics: ["claims-old"]
    mode: encrypt
    plaintext: accept
  - topics: ["*.secret"]
    mode: forbid
  - topics: ["claims.public", "pay?"]
    mode: encrypt
grants:
  - principals: ["spiffe://example.org/writer"]
    actions: [encrypt]
    topics: ["claims*", "public.*", "a.secret", "pay*", "nowhere"]
  - principals: ["spiffe://example.org/reader", "analytics-*"]
    actions: [decrypt]
    topics: ["*"]
    lease: {expires_in: 1m, refresh_in: 20s}
  - principals: ["spiffe://example.org/*", "analytics-7"]
    actions: [decrypt]
    topics: ["claims"]
  - principals: ["operator"]
    actions: [rotate]
    scopes: ["claims", "pay?", "public.*", "gone"]
`

const writer, reader = "spiffe://example.org/writer", "spiffe://example.org/reader"

func parse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func codeOf(err error) refusal.Code {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r.Code
	}
	return ""
}

// [CL-POL-001] [CL-POL-002] [CL-POL-003] [CL-POL-007] [CL-API-003]
func TestTopicDecisions(t *testing.T) {
	p := parse(t, example)
	half := Lease{RefreshIn: 150 * time.Second, ExpiresIn: 5 * time.Minute}
	own := Lease{RefreshIn: 20 * time.Second, ExpiresIn: time.Minute}
	for _, c := range []struct {
		principal string
		action    Action
		topic     string
		want      Decision
		code      refusal.Code
	}{
		{writer, ActionEncrypt, "claims", Decision{Mode: Encrypt, Scope: "claims", AcceptPlaintext: false, Lease: half}, ""},
		{writer, ActionEncrypt, "claims.x", Decision{Mode: Encrypt, Scope: "claims", AcceptPlaintext: false, Lease: half}, ""},
		{writer, ActionEncrypt, "claims.public", Decision{Mode: Encrypt, Scope: "claims", AcceptPlaintext: false, Lease: half}, ""}, // the first rule that matches
		{writer, ActionEncrypt, "claims.secret", Decision{Mode: Encrypt, Scope: "claims", AcceptPlaintext: false, Lease: half}, ""},
		{writer, ActionEncrypt, "pays", Decision{Mode: Encrypt, Scope: "pays", AcceptPlaintext: false, Lease: half}, ""}, // its own scope
		{writer, ActionEncrypt, "public.x", Decision{Mode: Clear, Scope: "public.x", AcceptPlaintext: true, Lease: half}, ""},
		{writer, ActionEncrypt, "a.secret", Decision{Mode: Forbid, Scope: "a.secret", AcceptPlaintext: false, Lease: half}, ""},
		{writer, ActionEncrypt, "claims-old", Decision{Mode: Encrypt, Scope: "claims-old", AcceptPlaintext: true, Lease: half}, ""},
		{reader, ActionDecrypt, "claims", Decision{Mode: Encrypt, Scope: "claims", AcceptPlaintext: false, Lease: own}, ""},
		{"analytics-7", ActionDecrypt, "claims", Decision{Mode: Encrypt, Scope: "claims", AcceptPlaintext: false, Lease: own}, ""}, // the first grant
		{writer, ActionDecrypt, "claims", Decision{Mode: Encrypt, Scope: "claims", AcceptPlaintext: false, Lease: half}, ""},

		{writer, ActionEncrypt, "nowhere", Decision{}, refusal.TopicUnknown},
		{writer, ActionEncrypt, "paying", Decision{}, refusal.TopicUnknown}, // granted, but no rule names it
		{reader, ActionDecrypt, "unheard-of", Decision{}, refusal.TopicUnknown},
		{writer, ActionEncrypt, "unheard-of", Decision{}, refusal.NotAuthorized}, // learns no more than this
		{writer, ActionDecrypt, "nowhere", Decision{}, refusal.NotAuthorized},
		{reader, ActionEncrypt, "claims", Decision{}, refusal.NotAuthorized},
		{reader, ActionEncrypt, "b.secret", Decision{}, refusal.NotAuthorized},
		{"nobody", ActionEncrypt, "claims", Decision{}, refusal.NotAuthorized},
		{"", ActionEncrypt, "claims", Decision{}, refusal.NotAuthorized},
		{"spiffe://example.org/writer/x", ActionEncrypt, "claims", Decision{}, refusal.NotAuthorized},
		{"spiffe://example.org/a/b", ActionDecrypt, "claims", Decision{}, refusal.NotAuthorized}, // * does not match /
		{"operator", ActionRotate, "claims", Decision{}, refusal.NotAuthorized},                  // granted on scopes only
	} {
		got, err := p.Topic(Asker{Principal: c.principal}, c.action, c.topic)
		if got != c.want || codeOf(err) != c.code || (err == nil) != (c.code == "") {
			t.Errorf("%s %s %s: %+v, %v; want %+v, %s", c.principal, c.action, c.topic, got, err, c.want, c.code)
		}
	}
}

func TestRotateDecisions(t *testing.T) {
	p := parse(t, example)
	for _, c := range []struct {
		principal, scope string
		code             refusal.Code
	}{
		{"operator", "claims", ""},
		{"operator", "pays", ""},
		{"operator", "payee", refusal.NotAuthorized},
		{"operator", "claims-old", refusal.NotAuthorized},
		{"operator", "public.x", refusal.TopicUnknown}, // clear: no key to rotate
		{"operator", "gone", refusal.TopicUnknown},
		{writer, "claims", refusal.NotAuthorized},
		{"", "claims", refusal.NotAuthorized},
	} {
		if err := p.Rotate(Asker{Principal: c.principal}, c.scope); codeOf(err) != c.code || (err == nil) != (c.code == "") {
			t.Errorf("%s %s: %v, want %q", c.principal, c.scope, err, c.code)
		}
	}
}

// Short patterns against short names, compared with regular expressions.
func TestGlobAgainstRegexp(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		pattern, name := random(source, "a*?/.", 7), random(source, "ab/.", 7)
		for _, stop := range []rune{anything, inPrincipal, inServer} {
			one := "(?s:.)"
			if stop != anything {
				one = "[^" + string(stop) + "]"
			}
			quoted := regexp.QuoteMeta(pattern)
			quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, `\*`, one+"*"), `\?`, one)
			want := regexp.MustCompile("^(?:" + quoted + ")$").MatchString(name)
			if got := newGlob(pattern, stop).matches([]rune(name)); got != want {
				t.Fatalf("pattern %q, name %q, stop %q: %v", pattern, name, stop, got)
			}
		}
	}
}

func random(source *rand.Rand, from string, most int) string {
	text := make([]byte, source.IntN(most+1))
	for i := range text {
		text[i] = from[source.IntN(len(from))]
	}
	return string(text)
}

func TestGlobEndsSoon(t *testing.T) {
	g := newGlob(strings.Repeat("*a", 120), anything)
	start := time.Now()
	if g.matches([]rune(strings.Repeat("a", 100) + strings.Repeat("b", 149))) {
		t.Fatal("matched")
	}
	if took := time.Since(start); took > time.Second {
		t.Fatalf("took %s", took)
	}
}

func TestDefaultLease(t *testing.T) {
	for text, want := range map[string]Lease{
		"":                          {150 * time.Second, 5 * time.Minute},
		"lease: {expires_in: 1s}":   {time.Second, time.Second},
		"lease: {expires_in: 3s}":   {time.Second, 3 * time.Second},
		"lease: {expires_in: 168h}": {84 * time.Hour, 168 * time.Hour},
		"lease: {expires_in: 9s, refresh_in: 9s}": {9 * time.Second, 9 * time.Second},
	} {
		p := parse(t, fmt.Sprintf("version: 1\n%s\ntopics: [{topics: [\"*\"], mode: encrypt}]\n"+
			"grants: [{principals: [p], actions: [encrypt], topics: [\"*\"]}]\n", text))
		if got, err := p.Topic(Asker{Principal: "p"}, ActionEncrypt, "t"); err != nil || got.Lease != want {
			t.Errorf("%s: %+v, %v", text, got.Lease, err)
		}
	}
}
