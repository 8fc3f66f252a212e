// The commands about a policy file. They need no key service.

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy/cases"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

type policyTestCommand struct {
	Policy string `arg:"" type:"existingfile" help:"The policy file."`
	Cases  string `arg:"" type:"existingfile" help:"The table of cases (YAML; spec/policy.md, \"Trying a policy\")."`
}

// policyResult is a case as programs see it.
type policyResult struct {
	Name    string `json:"name"`
	Line    int    `json:"line"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	Rule    string `json:"rule"`
}

// Run tries a policy on a table; a case that differs is a failure.
func (c *policyTestCommand) Run(g *Globals, s *commandline.Streams) error {
	p, err := readPolicy(c.Policy)
	if err != nil {
		return err
	}
	all, err := cases.Read(c.Cases)
	if err != nil {
		return err
	}
	results := cases.Run(p, all)
	failed := 0
	shown := make([]policyResult, len(results))
	for i, r := range results {
		shown[i] = policyResult{r.Name, r.Line, r.Problem == "", r.Problem, decidingRule(r.Got)}
		if r.Problem != "" {
			failed++
		}
	}
	if g.JSON {
		err = printJSON(s.Out, map[string]any{"cases": shown, "failed": failed})
	} else {
		err = printCases(s, results, shown)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d cases are not as expected", failed, len(results))
	}
	return err
}

func printCases(s *commandline.Streams, results []cases.Result, shown []policyResult) error {
	t := newTable("", "CASE", "WHO", "WHAT", "EXPECTED", "DECIDED BY")
	for i, r := range results {
		mark, expected := "ok", "refused"
		if r.Allowed {
			expected = "allowed"
		}
		if r.Problem != "" {
			mark, expected = "FAIL", expected+", but: "+r.Problem
		}
		t.row(mark, fmt.Sprintf("%s (line %d)", r.Name, r.Line), r.Who.Principal, strings.TrimSpace(string(r.Action)+" "+r.On), expected, shown[i].Rule)
	}
	return t.print(s.Out)
}

// decidingRule names the rules that decided: a grant, and for topics the rule behind it.
func decidingRule(e policy.Explanation) string {
	var rules []string
	for _, step := range e.Steps {
		if step.Decides {
			rules = append(rules, step.Rule)
		}
	}
	if len(rules) == 0 {
		return "no rule"
	}
	return strings.Join(rules, ", ")
}

type policyExplainCommand struct {
	Policy    string            `arg:"" type:"existingfile" help:"The policy file."`
	Principal string            `arg:"" help:"Who asks: a SPIFFE id or a common name."`
	Action    string            `arg:"" enum:"encrypt,decrypt,rotate,destroy,certificate,revoke,admin,read,write,manage,describe,group,transaction,cluster,access" help:"What for: ${enum}."`
	Name      string            `arg:"" optional:"" help:"The topic, the scope (rotate, destroy), the consumer group (group), the transactional id (transaction) or the principal (access)."`
	At        time.Time         `placeholder:"TIME" help:"When, such as 2026-11-20T22:00:00+01:00; now by default."`
	Remote    string            `placeholder:"ADDRESS" help:"From which address."`
	Claim     map[string]string `placeholder:"NAME=VALUE" help:"A claim of a JWT. May be repeated."`
}

// Run says which rule decides, and why.
func (c *policyExplainCommand) Run(g *Globals, s *commandline.Streams) error {
	p, err := readPolicy(c.Policy)
	if err != nil {
		return err
	}
	who, err := c.asker()
	if err != nil {
		return err
	}
	action := policy.Action(c.Action)
	switch on := action.On(); {
	case on == policy.Nothing && c.Name != "":
		return fmt.Errorf("%s takes no name", action)
	case on != policy.Nothing && c.Name == "":
		return fmt.Errorf("%s takes a name: %s", action, map[policy.Kind]string{
			policy.OnTopic: "a topic", policy.OnScope: "a scope", policy.OnGroup: "a consumer group", policy.OnTransaction: "a transactional id",
			policy.OnPrincipal: "the principal for whom is asked",
		}[on])
	}
	e := p.Explain(who, action, c.Name)
	if g.JSON {
		return printJSON(s.Out, explanation(e))
	}
	t := newTable("RULE", "LINE", "VERDICT")
	for _, step := range e.Steps {
		t.row(step.Rule, strconv.Itoa(step.Line), step.Verdict)
	}
	if err := t.print(s.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, "\n"+outcomeOf(e))
	return err
}

func (c *policyExplainCommand) asker() (policy.Asker, error) {
	who := policy.Asker{Principal: c.Principal, Time: c.At}
	for name, value := range c.Claim {
		if who.Claims == nil {
			who.Claims = map[string]any{}
		}
		who.Claims[name] = value
	}
	if c.Remote == "" {
		return who, nil
	}
	var err error
	who.Remote, err = netip.ParseAddr(c.Remote)
	return who, err
}

func explanation(e policy.Explanation) map[string]any {
	shown := map[string]any{"allowed": e.Err == nil, "steps": e.Steps}
	if e.Err != nil {
		if r, ok := errors.AsType[*refusal.Error](e.Err); ok {
			shown["code"], shown["detail"] = r.Code, r.Detail
		}
		return shown
	}
	if d := e.Decision; d.Lease.ExpiresIn > 0 {
		shown["mode"], shown["scope"], shown["expires_in"] = d.Mode, d.Scope, int(d.Lease.ExpiresIn/time.Second)
	}
	return shown
}

func outcomeOf(e policy.Explanation) string {
	if r, ok := errors.AsType[*refusal.Error](e.Err); ok {
		return fmt.Sprintf("REFUSED (%s): %s.", r.Code, r.Detail)
	}
	text := "ALLOWED"
	if d := e.Decision; d.Mode != "" {
		text += fmt.Sprintf(": mode %s, scope %s", d.Mode, d.Scope)
	}
	if d := e.Decision; d.Lease.ExpiresIn > 0 {
		text += ", for " + span(d.Lease.ExpiresIn)
	}
	if end := e.Decision.Ends; !end.IsZero() {
		text += ", ends at " + end.Format(time.RFC3339)
	}
	return text + "."
}

func readPolicy(path string) (*policy.Policy, error) {
	data, err := files.ReadTrusted(path, strictyaml.MaxSize)
	if err != nil {
		return nil, err
	}
	return policy.Parse(path, data)
}
