package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const rotating = `version: 1
topics:
  - topics: ["claims", "claims.*"]
    mode: encrypt
    scope: claims
  - topics: ["t-*"]
    mode: encrypt
grants:
  - principals: ["p"]
    actions: [encrypt]
    topics: ["*"]
rotation:
`

// [CL-OPR-006] The first rule decides; what it leaves out has the default.
func TestRotation(t *testing.T) {
	p, err := Parse("p.yaml", []byte(rotating+`
  - {scopes: ["claims"], every: 12h, records: 5, bytes: 512GiB}
  - {scopes: ["t-?"], every: 90s}
  - {scopes: ["t-*"], bytes: 7}
  - {scopes: ["claims"], every: 1m}
`))
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[string]Rotation{
		"claims": {12 * time.Hour, 5, 512 << 30},
		"t-1":    {90 * time.Second, 4_000_000_000, 1 << 40},
		"t-12":   {24 * time.Hour, 4_000_000_000, 7},
		"other":  DefaultRotation,
	} {
		if got := p.Rotation(scope); got != want {
			t.Errorf("%s: %+v", scope, got)
		}
	}
}

func TestRotationWithoutList(t *testing.T) {
	p, err := Parse("p.yaml", []byte(strings.TrimSuffix(rotating, "rotation:\n")))
	if err != nil || p.Rotation("claims") != DefaultRotation {
		t.Fatal(err)
	}
}

// [CL-POL-005] Each of these is refused, with its line.
func TestBadRotation(t *testing.T) {
	for name, rule := range map[string]string{
		"no scopes":         `{every: 1h}`,
		"empty scopes":      `{scopes: [], every: 1h}`,
		"no scope's name":   `{scopes: ["a b"]}`,
		"unknown member":    `{scopes: ["a"], after: 1h}`,
		"too often":         `{scopes: ["a"], every: 59s}`,
		"never":             `{scopes: ["a"], every: 87601h}`,
		"no duration":       `{scopes: ["a"], every: daily}`,
		"parts of a second": `{scopes: ["a"], every: 90500ms}`,
		"no records":        `{scopes: ["a"], records: 0}`,
		"negative records":  `{scopes: ["a"], records: -1}`,
		"fractional":        `{scopes: ["a"], records: 1.5}`,
		"exponent":          `{scopes: ["a"], records: 4e9}`,
		"too many records":  `{scopes: ["a"], records: 9007199254740992}`,
		"records as text":   `{scopes: ["a"], records: "5"}`,
		"no bytes":          `{scopes: ["a"], bytes: 0}`,
		"no unit":           `{scopes: ["a"], bytes: 5GB}`,
		"no number":         `{scopes: ["a"], bytes: GiB}`,
		"zero of a unit":    `{scopes: ["a"], bytes: 0GiB}`,
		"a space":           `{scopes: ["a"], bytes: 5 GiB}`,
		"overflow":          `{scopes: ["a"], bytes: 9007199254740992TiB}`,
		"too many bytes":    `{scopes: ["a"], bytes: 8192TiB}`,
		"twice":             `{scopes: ["a"], every: 1h, every: 2h}`,
		"no mapping":        `everything`,
	} {
		_, err := Parse("p.yaml", []byte(rotating+"  - "+rule+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "p.yaml:13:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Parse("p.yaml", []byte(rotating+"  []\n")); err == nil {
		t.Error("an empty list was taken")
	}
	var many strings.Builder
	for i := range maxRules + 1 {
		fmt.Fprintf(&many, "  - {scopes: [a%d]}\n", i)
	}
	if _, err := Parse("p.yaml", []byte(rotating+many.String())); err == nil || !strings.Contains(err.Error(), "rules") {
		t.Error("any number of rules is taken", err)
	}
}

func TestTopicsOf(t *testing.T) {
	p, err := Parse("p.yaml", []byte(strings.TrimSuffix(rotating, "rotation:\n")))
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[string]string{"claims": "[claims claims.*]", "t-1": "[t-1]", "other": "[]", "claims.x": "[]"} {
		if got := fmt.Sprint(p.TopicsOf(scope)); got != want {
			t.Errorf("%s: %s", scope, got)
		}
	}
	if s := p.Summary(); s.Topics != 2 || s.Grants != 1 || len(s.Digest) != 64 || !strings.HasPrefix(s.Text, "version: 1") || time.Since(s.Loaded) > time.Minute {
		t.Errorf("%+v", s)
	}
}
