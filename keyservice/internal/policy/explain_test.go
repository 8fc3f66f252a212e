package policy

import (
	"slices"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// An explanation ends like the call, and with the rule that decides.
func TestExplain(t *testing.T) {
	p := parse(t, `version: 1
topics:
  - {topics: [t], mode: encrypt, scope: s}
grants:
  - {principals: [q], actions: [encrypt], topics: ["*"]}
  - {principals: [p], actions: [decrypt], topics: ["*"]}
  - {principals: [p], actions: [encrypt], topics: ["u"]}
  - {principals: [p], actions: [encrypt], topics: ["*"], not_after: 2020-01-01T00:00:00Z}
  - {principals: [p], actions: [encrypt], topics: ["*"], not_before: 2999-01-01T00:00:00Z}
  - {principals: [p], actions: [encrypt], topics: ["*"], when: "request.topic == 'x'"}
  - {principals: [p], actions: [encrypt], topics: ["*"], name: the one}
  - {principals: [p], actions: [encrypt, rotate], topics: ["*"], scopes: ["*"]}
  - {principals: [p], actions: [certificate, admin], when: "claims.a == 1"}
`)
	for _, c := range []struct {
		principal string
		action    Action
		name      string
		code      refusal.Code
		last      Step
		verdicts  []reason
	}{
		{"p", ActionEncrypt, "t", "", Step{"topic rule 1", 3, "mode encrypt, scope s", true}, []reason{otherPrincipal, otherAction, otherName, over, notYet, conditionFalse, matches}},
		{"p", ActionEncrypt, "v", refusal.TopicUnknown, Step{"topics", 0, "no rule names the topic", true}, []reason{otherPrincipal, otherAction, otherName, over, notYet, conditionFalse, matches}},
		{"p", ActionRotate, "s", "", Step{"grant 8", 12, string(matches), true}, nil},
		{"p", ActionRotate, "z", refusal.TopicUnknown, Step{"grant 8", 12, string(matches), true}, nil},
		{"q", ActionEncrypt, "t", "", Step{"topic rule 1", 3, "mode encrypt, scope s", true}, []reason{matches}},
		{"q", ActionDestroy, "s", refusal.NotAuthorized, Step{"grant 9", 13, string(otherAction), false}, nil},
		{"p", ActionAdmin, "", refusal.NotAuthorized, Step{"grant 9", 13, "its condition could not be evaluated, which refuses: the condition: no such key: a", true}, nil},
		{"p", ActionCertificate, "", refusal.NotAuthorized, Step{"grant 9", 13, "its condition could not be evaluated, which refuses: the condition: no such key: a", true}, nil},
	} {
		e := p.Explain(Asker{Principal: c.principal}, c.action, c.name)
		if codeOf(e.Err) != c.code || e.Steps[len(e.Steps)-1] != c.last {
			t.Errorf("%s %s %s: %+v", c.principal, c.action, c.name, e)
		}
		for i, want := range c.verdicts {
			if e.Steps[i].Verdict != string(want) {
				t.Errorf("%s %s: step %d: %q, want %q", c.principal, c.action, i, e.Steps[i].Verdict, want)
			}
		}
	}
	if e := p.Explain(Asker{Principal: "p"}, ActionEncrypt, "t"); e.Decision.Scope != "s" || !slices.ContainsFunc(e.Steps, func(s Step) bool { return s.Rule == "grant 7 (the one)" }) {
		t.Errorf("%+v", e)
	}
}
