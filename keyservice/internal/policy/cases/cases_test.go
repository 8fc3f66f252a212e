package cases

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

const tried = `version: 1
topics:
  - {topics: [claims], mode: encrypt, scope: money}
  - {topics: ["public.*"], mode: clear}
grants:
  - {principals: [w], actions: [encrypt], topics: ["*"], lease: {expires_in: 2m}}
  - principals: ["spiffe://example.org/r"]
    actions: [decrypt]
    topics: [claims]
    windows: [{days: [fri], from: "08:00", to: "18:00", time_zone: UTC}]
    when: '"Claims" in certificate.organizations && claims.level > 2.0 && request.remote == "10.1.2.3"'
  - {principals: [o], actions: [rotate, admin, certificate], scopes: ["*"]}
`

const table = `version: 1
cases:
  - {name: writes, principal: w, action: encrypt, topic: claims, expect: allowed, mode: encrypt, scope_is: money, expires_in: 2m}
  - {name: clear, principal: w, action: encrypt, topic: public.x, expect: allowed, mode: clear}
  - {name: unknown, principal: w, action: encrypt, topic: other, expect: refused, code: topic-unknown}
  - {name: not reading, principal: w, action: decrypt, topic: claims, expect: refused, code: not-authorized}
  - {name: reads, principal: "spiffe://example.org/r", action: decrypt, topic: claims, at: 2026-11-20T10:00:00Z, remote: 10.1.2.3,
     certificate: {common_name: r, organizations: [Claims], dns_names: [r], organizational_units: [u]}, claims: {level: 3, more: {deep: [1]}}, expect: allowed}
  - {name: at night, principal: "spiffe://example.org/r", action: decrypt, topic: claims, at: 2026-11-20T20:00:00Z, remote: 10.1.2.3,
     certificate: {organizations: [Claims]}, claims: {level: 3}, expect: refused}
  - {name: no certificate, principal: "spiffe://example.org/r", action: decrypt, topic: claims, at: 2026-11-20T10:00:00Z, expect: refused}
  - {name: rotates, principal: o, action: rotate, scope: money, expect: allowed}
  - {name: admin, principal: o, action: admin, expect: allowed}
  - {name: certificate, principal: o, action: certificate, expires_in: 1h, expect: allowed}
`

func run(t *testing.T, table string) []Result {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(tried))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse("cases.yaml", []byte(table))
	if err != nil {
		t.Fatal(err)
	}
	return Run(p, all)
}

func TestAsExpected(t *testing.T) {
	results := run(t, table)
	if len(results) != 10 {
		t.Fatal(len(results))
	}
	for _, r := range results {
		if r.Problem != "" || r.Line == 0 {
			t.Errorf("%s (line %d): %s", r.Name, r.Line, r.Problem)
		}
	}
}

// Every expectation can fail.
func TestNotAsExpected(t *testing.T) {
	for change, problem := range map[[2]string]string{
		{"expect: allowed, mode: encrypt, scope_is: money, expires_in: 2m", "expect: refused"}: "allowed",
		{"mode: encrypt", "mode: clear"}:         "mode encrypt",
		{"scope_is: money", "scope_is: claims"}:  "scope money",
		{"expires_in: 2m", "expires_in: 3m"}:     "expires in 2m0s",
		{"expires_in: 1h", "expires_in: 59m"}:    "expires in 1h0m0s",
		{"code: topic-unknown", "code: closed"}:  "refused, but with topic-unknown",
		{"remote: 10.1.2.3", "remote: 10.1.2.4"}: "refused: not-authorized",
		{"level: 3", "level: 1"}:                 "refused: not-authorized",
	} {
		changed := strings.Replace(table, change[0], change[1], 1)
		var problems []string
		for _, r := range run(t, changed) {
			if r.Problem != "" {
				problems = append(problems, r.Problem)
			}
		}
		if len(problems) != 1 || problems[0] != problem {
			t.Errorf("%v: %q, want %q", change, problems, problem)
		}
	}
}

func TestBadTables(t *testing.T) {
	const good = "{principal: p, action: encrypt, topic: t, expect: allowed}"
	for name, one := range map[string]string{
		"no principal":         "{action: encrypt, topic: t, expect: allowed}",
		"no expectation":       "{principal: p, action: encrypt, topic: t}",
		"unknown expectation":  "{principal: p, action: encrypt, topic: t, expect: maybe}",
		"unknown action":       "{principal: p, action: peek, topic: t, expect: allowed}",
		"unknown member":       "{principal: p, action: encrypt, topic: t, expect: allowed, when: x}",
		"no topic":             "{principal: p, action: encrypt, expect: allowed}",
		"scope for topic":      "{principal: p, action: encrypt, scope: t, expect: allowed}",
		"topic for rotate":     "{principal: p, action: rotate, topic: t, expect: allowed}",
		"topic for admin":      "{principal: p, action: admin, topic: t, expect: allowed}",
		"invalid topic":        "{principal: p, action: encrypt, topic: \"t *\", expect: allowed}",
		"code when allowed":    "{principal: p, action: encrypt, topic: t, expect: allowed, code: x}",
		"mode when refused":    "{principal: p, action: encrypt, topic: t, expect: refused, mode: clear}",
		"lease of admin":       "{principal: p, action: admin, expect: allowed, expires_in: 1m}",
		"date without time":    "{principal: p, action: admin, expect: allowed, at: 2026-11-20}",
		"bad address":          "{principal: p, action: admin, expect: allowed, remote: 10.1.2}",
		"address with port":    "{principal: p, action: admin, expect: allowed, remote: \"10.1.2.3:80\"}",
		"claims as list":       "{principal: p, action: admin, expect: allowed, claims: [a]}",
		"unknown certificate":  "{principal: p, action: admin, expect: allowed, certificate: {serial: 1}}",
		"empty organizations":  "{principal: p, action: admin, expect: allowed, certificate: {organizations: []}}",
		"alias":                "*a",
		"claims not from JSON": "{principal: p, action: admin, expect: allowed, claims: {a: .nan}}",
	} {
		_, err := Parse("cases.yaml", []byte("version: 1\ncases:\n  - "+good+"\n  - "+one+"\n"))
		if mistake, ok := errors.AsType[*strictyaml.Error](err); !ok || mistake.Line != 4 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "no cases": "version: 1\ncases: []\n", "version 2": "version: 2\n", "too many": "version: 1\ncases:\n" + strings.Repeat("  - "+good+"\n", Limit+1),
	} {
		if _, err := Parse("cases.yaml", []byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := Read("/nowhere/cases.yaml"); err == nil {
		t.Error("a missing file was read")
	}
}

// Without a time, a case is about now.
func TestNow(t *testing.T) {
	text := strings.Replace(tried, "lease: {expires_in: 2m}", "not_before: "+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), 1)
	p, err := policy.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse("cases.yaml", []byte("version: 1\ncases:\n  - {principal: w, action: encrypt, topic: claims, expect: allowed}\n"))
	if err != nil || Run(p, all)[0].Problem != "" {
		t.Error(err)
	}
}
