// What sidecars ask for.

package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

const kafka = `version: 1
lease: {expires_in: 5m}
topics:
  - {topics: ["claims*"], mode: encrypt, scope: claims}
  - {topics: ["*.secret"], mode: forbid}
grants:
  - {principals: [reader], actions: [read], topics: ["claims*", "x.secret", other], lease: {expires_in: 10s}}
  - {principals: [reader], actions: [group], groups: ["claims-*"], not_after: 2026-12-01T00:00:00Z}
  - {principals: [writer], actions: [write, transaction], topics: [claims], transactions: ["tx/?"]}
  - {principals: [boss], actions: [manage, cluster], topics: ["*"]}
  - {principals: ["monitor"], actions: [describe], topics: ["*"]}
  - {principals: [sidecar], actions: [access], for: ["reader", "spiffe://example.org/team/**"]}
  - principals: [local]
    actions: [read]
    topics: [claims]
    when: 'process.given && process.uid == 1000 && process.executable == "/usr/bin/kcat" && process.labels.app == "claims" && process.sha256 == "ab"'
`

// [CL-POL-015] [CL-POL-016] [CL-POL-005]
func TestAccess(t *testing.T) {
	p := parse(t, kafka)
	at := instant(t, "2026-11-30T23:59:00Z")
	const allowed = refusal.Code("")
	for _, c := range []struct {
		principal string
		action    Action
		name      string
		code      refusal.Code
		expires   time.Duration
	}{
		{"reader", ActionRead, "claims", allowed, 10 * time.Second},
		{"reader", ActionDescribe, "claims.eu", allowed, 10 * time.Second},
		{"reader", ActionWrite, "claims", refusal.NotAuthorized, 0},
		{"reader", ActionManage, "claims", refusal.NotAuthorized, 0},
		{"reader", ActionRead, "x.secret", refusal.TopicForbidden, 0},
		{"reader", ActionDescribe, "x.secret", refusal.TopicForbidden, 0},
		{"reader", ActionRead, "other", refusal.TopicUnknown, 0},
		{"stranger", ActionRead, "other", refusal.NotAuthorized, 0},
		{"reader", ActionGroup, "claims-1", allowed, time.Minute},
		{"reader", ActionGroup, "claims", refusal.NotAuthorized, 0},
		{"reader", ActionTransaction, "claims-1", refusal.NotAuthorized, 0},
		{"writer", ActionTransaction, "tx/1", allowed, 5 * time.Minute},
		{"writer", ActionTransaction, "tx/12", refusal.NotAuthorized, 0},
		{"writer", ActionDescribe, "claims", allowed, 5 * time.Minute},
		{"writer", ActionCluster, "", refusal.NotAuthorized, 0},
		{"boss", ActionCluster, "", allowed, 5 * time.Minute},
		{"boss", ActionCluster, "x", refusal.NotAuthorized, 0},
		{"boss", ActionRead, "claims", refusal.NotAuthorized, 0},
		{"boss", ActionManage, "", refusal.NotAuthorized, 0},
		{"monitor", ActionDescribe, "claims", allowed, 5 * time.Minute},
		{"monitor", ActionRead, "claims", refusal.NotAuthorized, 0},
		{"boss", ActionEncrypt, "claims", refusal.NotAuthorized, 0},
	} {
		d, err := p.Access(Asker{Principal: c.principal, Time: at}, c.action, c.name)
		if codeOf(err) != c.code || d.Lease.ExpiresIn != c.expires {
			t.Errorf("%s %s %q: %+v %v", c.principal, c.action, c.name, d.Lease, err)
		}
		if e := p.Explain(Asker{Principal: c.principal, Time: at}, c.action, c.name); codeOf(e.Err) != c.code {
			t.Errorf("explained: %s %s %q: %v", c.principal, c.action, c.name, e.Err)
		}
	}
}

// [CL-POL-017]
func TestMayAsk(t *testing.T) {
	p := parse(t, kafka)
	for subject, allowed := range map[string]bool{"reader": true, "spiffe://example.org/team/a/b": true, "writer": false, "spiffe://example.org/team": false, "": false} {
		if err := p.MayAsk(Asker{Principal: "sidecar"}, subject); (err == nil) != allowed {
			t.Errorf("%q: %v", subject, err)
		}
		if err := p.MayAsk(Asker{Principal: "reader"}, subject); codeOf(err) != refusal.NotAuthorized {
			t.Errorf("a stranger for %q: %v", subject, err)
		}
	}
	if p.MayAskForSomebody(Asker{Principal: "sidecar"}) != nil || p.MayAskForSomebody(Asker{Principal: "reader"}) == nil {
		t.Error("who may ask at all")
	}
}

// [CL-POL-013] Of a process that is not known, conditions on it refuse.
func TestProcessConditions(t *testing.T) {
	p := parse(t, kafka)
	good := Process{UID: 1000, Executable: "/usr/bin/kcat", SHA256: "ab", Labels: map[string]string{"app": "claims"}}
	decide := func(process *Process) refusal.Code {
		_, err := p.Access(Asker{Principal: "local", Process: process}, ActionRead, "claims")
		return codeOf(err)
	}
	if got := decide(&good); got != "" {
		t.Error(got)
	}
	for name, change := range map[string]func(*Process){
		"uid": func(p *Process) { p.UID = 0 }, "executable": func(p *Process) { p.Executable = "/tmp/kcat" },
		"hash": func(p *Process) { p.SHA256 = "" }, "labels": func(p *Process) { p.Labels = nil },
	} {
		bad := good
		change(&bad)
		if got := decide(&bad); got != refusal.NotAuthorized {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := decide(nil); got != refusal.NotAuthorized {
		t.Error(got)
	}
}

func TestBadAccessGrants(t *testing.T) {
	for name, grant := range map[string]string{
		"read without topics":       "{principals: [p], actions: [read]}",
		"group without groups":      "{principals: [p], actions: [group], topics: [a]}",
		"topics for a group":        "{principals: [p], actions: [group], topics: [a], groups: [g]}",
		"groups for read":           "{principals: [p], actions: [read], topics: [a], groups: [g]}",
		"transaction without ids":   "{principals: [p], actions: [transaction]}",
		"access for nobody":         "{principals: [p], actions: [access]}",
		"for with admin":            "{principals: [p], actions: [admin], for: [q]}",
		"a lease for access":        "{principals: [p], actions: [access], for: [q], lease: {expires_in: 1m}}",
		"a bad group":               "{principals: [p], actions: [group], groups: [\"a\\u0000\"]}",
		"an empty list":             "{principals: [p], actions: [group], groups: []}",
		"a bad principal in for":    "{principals: [p], actions: [access], for: [\"a/**\"]}",
		"cluster with topics":       "{principals: [p], actions: [cluster], topics: [a]}",
		"a condition on no process": "{principals: [p], actions: [cluster], when: 'process.pid == 1'}",
	} {
		_, err := Parse("policy.yaml", []byte(head+"grants:\n  - "+grant+"\n"))
		if mistake, ok := errors.AsType[*strictyaml.Error](err); !ok || mistake.Line != strings.Count(head, "\n")+2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
