// Conditions, and mistakes in grants.

package policy

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

func claimsWriter() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(0xabc), Subject: pkix.Name{CommonName: "writer", Organization: []string{"Claims"}},
		URIs:      []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/writer"}},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// [CL-POL-012]
func TestConditions(t *testing.T) {
	who := Asker{
		Principal: "p", Remote: netip.MustParseAddr("::ffff:10.1.2.3"), Certificate: claimsWriter(),
		Time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Claims: map[string]any{"team": "a", "roles": []any{"x", "y"}, "level": 3.0},
	}
	for _, text := range []string{
		`true`, `principal == "p"`, `request.action == "encrypt" && request.topic == "t" && request.scope == "t"`,
		`request.remote == "10.1.2.3"`, `cidr("10.0.0.0/8").containsIP(request.remote)`, `request.time.getHours() == 12`,
		`claims.team == "a"`, `"x" in claims.roles`, `has(claims.team) && !has(claims.nothing)`, `claims.level > 2.0`,
		`"Claims" in certificate.organizations`, `certificate.common_name == "writer"`, `certificate.serial == "abc"`,
		`certificate.uris.exists(u, u == "spiffe://example.org/writer")`, `certificate.not_after - request.time > duration("1h")`,
		`certificate.given && certificate.subject.contains("O=Claims")`,
	} {
		p := granting(t, "when: '"+text+"'")
		if _, err := p.Topic(who, ActionEncrypt, "t"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		p = granting(t, "when: '!("+text+")'")
		if _, err := p.Topic(who, ActionEncrypt, "t"); codeOf(err) != refusal.NotAuthorized {
			t.Errorf("not %s: %v", text, err)
		}
	}
}

// [CL-POL-013] A condition that fails refuses, also where a later grant would allow.
func TestConditionsThatFail(t *testing.T) {
	long := make([]any, 5000)
	for i := range long {
		long[i] = "x"
	}
	who := Asker{Principal: "p", Claims: map[string]any{"team": "a", "list": long}}
	const next = "  - {principals: [p], actions: [encrypt], topics: [\"*\"]}\n"
	for _, text := range []string{
		`claims.nothing == "a"`, `claims.team > 7`, `claims.team.deeper == 1`, `certificate.common_name == "x"`, `!("x" in certificate.uris)`,
		`cidr("10.0.0.0/8").containsIP(request.remote)`, `int(claims.team) == 1`, `1 / (size(claims.team) - 1) == 1`,
		`claims.list.all(a, claims.list.all(b, a == b))`, `cidr(claims.team).containsIP("1.2.3.4")`, `claims.team`, `claims.team.matches(claims.list[0] + "(")`,
	} {
		condition := text
		if text == `claims.team` {
			condition = `bool(claims.team)`
		}
		p := parse(t, head+tail+"    name: checked\n    when: '"+condition+"'\n"+next)
		_, err := p.Topic(who, ActionEncrypt, "t")
		r, ok := errors.AsType[*refusal.Error](err)
		if !ok || r.Code != refusal.NotAuthorized || r.Cause == nil || !strings.Contains(r.Detail, "grant 1 (checked)") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// [CL-POL-005] [CL-POL-010] [CL-POL-012] Every mistake names line and rule.
func TestMistakesInGrants(t *testing.T) {
	for name, member := range map[string]string{
		"date without a time":       "not_before: 2026-11-01",
		"date without an offset":    "not_after: 2026-11-01T00:00:00",
		"date as number":            "not_after: 20261101",
		"date of nonsense":          "not_after: tomorrow",
		"no such day":               "not_after: 2026-02-30T00:00:00Z",
		"windows empty":             "windows: []",
		"no days":                   `windows: [{from: "08:00", to: "09:00", time_zone: UTC}]`,
		"no zone":                   `windows: [{days: [mon], from: "08:00", to: "09:00"}]`,
		"day in full":               `windows: [{days: [monday], from: "08:00", to: "09:00", time_zone: UTC}]`,
		"day twice":                 `windows: [{days: [mon, mon], from: "08:00", to: "09:00", time_zone: UTC}]`,
		"unknown zone":              `windows: [{days: [mon], from: "08:00", to: "09:00", time_zone: Europe/Bonn}]`,
		"the machine's zone":        `windows: [{days: [mon], from: "08:00", to: "09:00", time_zone: Local}]`,
		"zone outside":              `windows: [{days: [mon], from: "08:00", to: "09:00", time_zone: ../../etc/passwd}]`,
		"from without quotes":       `windows: [{days: [mon], from: 08:00:00, to: "09:00", time_zone: UTC}]`,
		"from as number":            `windows: [{days: [mon], from: 8, to: "09:00", time_zone: UTC}]`,
		"from 24:00":                `windows: [{days: [mon], from: "24:00", to: "09:00", time_zone: UTC}]`,
		"to 24:01":                  `windows: [{days: [mon], from: "23:00", to: "24:01", time_zone: UTC}]`,
		"minute 60":                 `windows: [{days: [mon], from: "23:60", to: "24:00", time_zone: UTC}]`,
		"empty window":              `windows: [{days: [mon], from: "08:00", to: "08:00", time_zone: UTC}]`,
		"unknown member of windows": `windows: [{days: [mon], from: "08:00", to: "09:00", zone: UTC}]`,
		"33 windows":                "windows: [" + strings.Repeat(`{days: [mon], from: "08:00", to: "09:00", time_zone: UTC}, `, 33) + "]",
		"CEL syntax":                `when: "principal =="`,
		"CEL unknown name":          `when: "princpal == 'a'"`,
		"CEL unknown member":        `when: "certificate.comon_name == 'a'"`,
		"CEL unknown function":      `when: "principal.startswith('a')"`,
		"CEL types":                 `when: "principal > 7"`,
		"CEL gives text":            `when: "principal"`,
		"CEL gives anything":        `when: "claims.admin"`,
		"CEL as truth value":        `when: true`,
		"CEL empty":                 `when: ""`,
		"CEL too long":              `when: "principal == '` + strings.Repeat("x", 5000) + `'"`,
		"CEL too deep":              `when: "` + strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500) + `"`,
		"CEL bad pattern":           `when: "principal.matches('(')"`,
		"lifetime":                  "lifetime: 1h",
		"scopes":                    "scopes: [a]",
		"name":                      `name: "a\nb"`,
		"unknown member":            "if: true",
	} {
		text := head + tail + "    " + member + "\n"
		line := strings.Count(head+tail, "\n") + 1
		p, err := Parse("policy.yaml", []byte(text))
		mistake, ok := errors.AsType[*strictyaml.Error](err)
		if p != nil || !ok {
			t.Errorf("%s: taken: %v", name, err)
			continue
		}
		ofRule := name == "lifetime" || name == "scopes" // the combination is wrong
		if !strings.Contains(mistake.Text, "grant 1") || !ofRule && mistake.Line != line {
			t.Errorf("%s: line %d, want %d: %v", name, mistake.Line, line, err)
		}
	}
}

// The order of dates, and members that do not belong to the actions.
func TestMistakesOfCombination(t *testing.T) {
	for i, grant := range []string{
		"{principals: [p], actions: [encrypt], topics: [t], not_before: 2026-02-01T00:00:00Z, not_after: 2026-02-01T01:00:00+01:00}",
		"{principals: [p], actions: [certificate], lease: {expires_in: 5s}}",
		"{principals: [p], actions: [certificate], topics: [t]}",
		"{principals: [p], actions: [certificate], lifetime: 9s}",
		"{principals: [p], actions: [certificate], lifetime: 169h}",
		"{principals: [p], actions: [admin], scopes: [t]}",
		"{principals: [p], actions: [destroy]}",
		"{principals: [p], actions: [revoke], lifetime: 1h}",
		"{principals: [p], actions: [revoke], server_names: [a]}",
		"{principals: [p], actions: [certificate], server_names: []}",
		"{principals: [p], actions: [certificate], server_names: [a..b]}",
		"{principals: [p], actions: [certificate], server_names: [A.example.org]}",
		"{principals: [p], actions: [certificate], server_names: [\"10.0.0.*\"]}",
		"{principals: [p], actions: [certificate], server_names: [\"10.0.0.0/8\"]}",
		"{principals: [p], actions: [certificate], server_names: [\"fe80::1%eth0\"]}",
		"{principals: [p, \"spiffe://example.org/**/x\"], actions: [admin]}",
		"{principals: [\"team/**\"], actions: [admin]}",
		"{principals: [\"**\"], actions: [admin]}",
	} {
		if p, err := Parse("policy.yaml", []byte(head+"grants:\n  - "+grant+"\n")); p != nil || err == nil || !strings.Contains(err.Error(), "policy.yaml:6: grant 1: ") {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// [CL-POL-009]
func TestSPIFFEPaths(t *testing.T) {
	p := parse(t, head+"grants:\n  - {principals: [\"spiffe://example.org/team-?/**\"], actions: [admin]}\n")
	for name, allowed := range map[string]bool{
		"spiffe://example.org/team-a/x":    true,
		"spiffe://example.org/team-a/x/y":  true,
		"spiffe://example.org/team-a":      false,
		"spiffe://example.org/team-a/":     false,
		"spiffe://example.org/team-ab/x":   false,
		"spiffe://example.org/x/team-a/y":  false,
		"spiffe://example.com/team-a/x":    false,
		"spiffe://example.org/team-//x":    false,
		"https://example.org/team-a/x":     false,
		"spiffe://example.org.x/team-a/xy": false,
	} {
		if err := p.Allows(Asker{Principal: name}, ActionAdmin, ""); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// [CL-POL-003] No action stands for another one, and none is on what it is not granted on.
func TestActionsAreApart(t *testing.T) {
	on := map[Kind]string{
		OnTopic: `, topics: ["*"]`, OnScope: `, scopes: ["*"]`, OnGroup: `, groups: ["*"]`, OnTransaction: `, transactions: ["*"]`, OnPrincipal: `, for: ["*"]`,
	}
	decide := func(p *Policy, a Action) error {
		who := Asker{Principal: "p"}
		name := "t"
		if a.On() == Nothing {
			name = ""
		}
		switch {
		case a.InKafka():
			_, err := p.Access(who, a, name)
			return err
		case a == ActionAccess:
			return p.MayAsk(who, name)
		case a.OnTopic():
			_, err := p.Topic(who, a, "t")
			return err
		case a.OnScope():
			return p.Allows(who, a, "t")
		case a == ActionCertificate:
			_, err := p.Certificate(who)
			return err
		default:
			return p.Allows(who, a, "")
		}
	}
	for _, granted := range Actions {
		p := parse(t, head+fmt.Sprintf("grants:\n  - {principals: [p], actions: [%s]%s}\n", granted, on[granted.On()]))
		for _, asked := range Actions {
			seen := asked == ActionDescribe && (granted == ActionRead || granted == ActionWrite || granted == ActionManage) // [CL-POL-015]
			if err := decide(p, asked); (err == nil) != (asked == granted || seen) {
				t.Errorf("%s granted, %s asked: %v", granted, asked, err)
			}
		}
		for action, name := range map[Action]string{ActionEncrypt: "", ActionRotate: "", ActionAdmin: "t", ActionDecrypt: "t"} {
			if err := p.Allows(Asker{Principal: "p"}, action, name); err == nil {
				t.Errorf("%s on %q", action, name)
			}
		}
	}
}

func TestLifetimes(t *testing.T) {
	p := parse(t, head+"grants:\n  - {principals: [a], actions: [certificate]}\n"+
		"  - {principals: [b], actions: [certificate], lifetime: 24h, not_after: 2026-12-01T00:00:00Z}\n")
	if got, err := p.Certificate(Asker{Principal: "a"}); err != nil || got.Lifetime != time.Hour {
		t.Error(got, err)
	}
	if got, err := p.Certificate(Asker{Principal: "b", Time: instant(t, "2026-11-30T22:00:00Z")}); err != nil || got.Lifetime != 2*time.Hour {
		t.Error(got, err)
	}
	if got, err := p.Certificate(Asker{Principal: "c"}); codeOf(err) != refusal.NotAuthorized {
		t.Error(got, err)
	}
}
