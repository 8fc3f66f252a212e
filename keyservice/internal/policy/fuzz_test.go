package policy

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Whatever the file says: an error with a line, or a policy that answers every question by a decision within the limits or by a refusal
// [CL-POL-003] [CL-POL-005] [CL-POL-006].
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../dev/policy.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{
		"version: 1\ntopics: []\ngrants: []\n",
		"version: 1\ntopics: [{topics: [a], mode: clear}]\ngrants: [{principals: [p], actions: [encrypt], topics: ['*']}]\n",
		"version: 1\nlease: {expires_in: 1s, refresh_in: 1s}\ntopics: [{topics: ['a*?'], mode: encrypt, scope: s, plaintext: accept}]\n" +
			"grants: [{principals: ['spiffe://e/**'], actions: [rotate, destroy], scopes: [s], lease: {expires_in: 1m}}]\n",
		"version: 1\ntopics: [{topics: [a], mode: encrypt}]\ngrants:\n- principals: ['p']\n  actions: [decrypt]\n  topics: [a]\n" +
			"  not_before: 2026-01-02T03:04:05Z\n  when: 'principal == \"p\"'\n",
		"a: &a [*a]\n", "? {}\n: []\n", "version: 1\nversion: 1\n", "\xff", "%YAML 9.9\n---\n", "- - - - - - - - - -", "!!binary x", "{[}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("policy.yaml", data)
		if err != nil {
			if at, ok := errors.AsType[*strictyaml.Error](err); !ok || p != nil || at.Line < 0 {
				t.Fatalf("an error without its place: %v", err)
			}
			return
		}
		for _, principal := range []string{"", "p", "spiffe://dev.cipherlane/producer"} {
			for _, topic := range []string{"a", "claims", "x.secret", "public.y"} {
				askAll(t, p, Asker{Principal: principal, Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}, topic)
			}
		}
	})
}

func askAll(t *testing.T, p *Policy, who Asker, topic string) {
	t.Helper()
	for _, action := range []Action{ActionEncrypt, ActionDecrypt} {
		d, err := p.Topic(who, action, topic)
		if err != nil {
			if _, ok := errors.AsType[*refusal.Error](err); !ok {
				t.Fatalf("not a refusal: %v", err)
			}
			continue
		}
		if names.CheckTopic(d.Scope) != nil || d.Lease.RefreshIn < MinLease || d.Lease.RefreshIn > d.Lease.ExpiresIn || d.Lease.ExpiresIn > MaxLease {
			t.Fatalf("%+v", d)
		}
	}
	if err := p.Rotate(who, topic); err == nil && !p.hasScope(topic) {
		t.Fatalf("%s may rotate %s, which no topic has", who.Principal, topic)
	}
}
