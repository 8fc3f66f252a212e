// Package cases tries a policy on a table of who may what, when (spec/policy.md, "Trying a policy").
package cases

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Limit is the number of cases in one file (spec/limits.md).
const Limit = 10_000

type (
	node   = strictyaml.Node
	field  = strictyaml.Field
	fields = map[string]strictyaml.Field
)

// Case is one line of the table: a question, and what is expected of the answer.
type Case struct {
	Line   int
	Name   string
	Who    policy.Asker
	Action policy.Action
	On     string // a topic or a scope, by the action

	Allowed   bool
	Code      string // of the refusal; empty: any
	Mode      string // empty: any, as below
	Scope     string
	ExpiresIn time.Duration
}

// Result is what became of a case.
type Result struct {
	Case

	Got     policy.Explanation
	Problem string // how it differs from what is expected; empty: it does not
}

// Read reads a table.
func Read(path string) ([]Case, error) {
	data, err := files.ReadTrusted(path, strictyaml.MaxSize)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a table; file is the name that errors show.
func Parse(file string, data []byte) ([]Case, error) {
	root, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var all []Case
	err = root.Members(fields{
		"version": {Required: true, Read: func(n node) error {
			_, err := n.Integer(1, 1)
			return err
		}},
		"cases": {Required: true, Read: func(n node) error {
			count, err := n.List(func(item node) error {
				one, err := read(item)
				all = append(all, one)
				return err
			})
			if err == nil && count > Limit {
				err = n.Errorf("%d cases are more than %d", count, Limit)
			}
			return err
		}},
	})
	return all, err
}

func read(n node) (Case, error) {
	c := Case{Line: n.Line()}
	var action, expect string
	var on [5]string // by kinds
	actions := make([]string, len(policy.Actions))
	for i, a := range policy.Actions {
		actions[i] = string(a)
	}
	err := n.Members(fields{
		"name":        strictyaml.TextInto(&c.Name),
		"principal":   strictyaml.Must(strictyaml.TextInto(&c.Who.Principal)),
		"action":      {Required: true, Read: func(n node) error { return n.OneOf(&action, actions...) }},
		"topic":       {Read: nameInto(&on[0])},
		"scope":       {Read: nameInto(&on[1])},
		"group":       strictyaml.TextInto(&on[2]),
		"transaction": strictyaml.TextInto(&on[3]),
		"for":         strictyaml.TextInto(&on[4]),
		"process":     {Read: func(n node) error { return readProcess(n, &c.Who) }},
		"at":          strictyaml.InstantInto(&c.Who.Time),
		"remote":      {Read: remoteInto(&c.Who.Remote)},
		"certificate": {Read: func(n node) error { return readCertificate(n, &c.Who) }},
		"claims": {Read: func(n node) (err error) {
			c.Who.Claims, err = n.Object()
			return err
		}},
		"expect":     {Required: true, Read: func(n node) error { return n.OneOf(&expect, "allowed", "refused") }},
		"code":       strictyaml.TextInto(&c.Code),
		"mode":       strictyaml.TextInto(&c.Mode),
		"scope_is":   strictyaml.TextInto(&c.Scope),
		"expires_in": strictyaml.DurationInto(&c.ExpiresIn, policy.MinLease, policy.MaxLease),
	})
	c.Action, c.Allowed, c.On = policy.Action(action), expect == "allowed", strings.Join(on[:], "")
	if err == nil {
		err = c.check(n, on)
	}
	return c, err
}

// check refuses a case that asks for less than it seems to.
func (c *Case) check(n node, on [5]string) error {
	for i, kind := range [5]policy.Kind{policy.OnTopic, policy.OnScope, policy.OnGroup, policy.OnTransaction, policy.OnPrincipal} {
		if (c.Action.On() == kind) != (on[i] != "") {
			return n.Errorf("%s takes %s; %q is given with no other action, and never left out", c.Action, named(c.Action.On()), kind)
		}
	}
	hasLease := c.Action.HasLease() || c.Action == policy.ActionCertificate
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{c.Allowed && c.Code != "", `"code" goes with expect: refused`},
		{c.Mode+c.Scope != "" && (!c.Allowed || !c.Action.OnTopic()), `"mode" and "scope_is" go with actions on topics that are expected to be allowed`},
		{c.ExpiresIn > 0 && (!c.Allowed || !hasLease), `"expires_in" goes with what has a lease or a lifetime, and is expected to be allowed`},
	} {
		if rule.broken {
			return n.Errorf("%s", rule.text)
		}
	}
	return nil
}

func named(kind policy.Kind) string {
	if kind == policy.Nothing {
		return "no name"
	}
	return strconv.Quote(string(kind))
}

func readProcess(n node, who *policy.Asker) error {
	p := &policy.Process{Labels: map[string]string{}}
	var uid int
	err := n.Members(fields{
		"uid":        strictyaml.Must(strictyaml.IntegerInto(&uid, 0, math.MaxUint32)),
		"executable": strictyaml.Must(strictyaml.TextInto(&p.Executable)),
		"sha256":     strictyaml.TextInto(&p.SHA256),
	})
	p.UID, who.Process = int64(uid), p
	return err
}

func nameInto(target *string) func(node) error {
	return func(n node) error {
		text, err := n.Text()
		if err != nil {
			return err
		}
		if err := names.CheckTopic(text); err != nil {
			return n.Errorf("invalid name %q: %v", text, err)
		}
		*target = text
		return nil
	}
}

func remoteInto(target *netip.Addr) func(node) error {
	return func(n node) error {
		text, err := n.Text()
		if err != nil {
			return err
		}
		if *target, err = netip.ParseAddr(text); err != nil {
			return n.Errorf("%q is not an address such as 10.1.2.3", text)
		}
		return nil
	}
}

// readCertificate makes a certificate that says what conditions may look at.
func readCertificate(n node, who *policy.Asker) error {
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	var subject pkix.Name
	err := n.Members(fields{
		"common_name":          strictyaml.TextInto(&subject.CommonName),
		"organizations":        textsInto(&subject.Organization),
		"organizational_units": textsInto(&subject.OrganizationalUnit),
		"dns_names":            textsInto(&c.DNSNames),
	})
	c.Subject = subject
	if uri, wrong := url.Parse(who.Principal); wrong == nil && uri.Scheme == "spiffe" {
		c.URIs = []*url.URL{uri}
	}
	who.Certificate = c
	return err
}

func textsInto(target *[]string) field {
	return field{Read: func(n node) error {
		_, err := n.List(func(item node) error {
			text, err := item.Text()
			*target = append(*target, text)
			return err
		})
		return err
	}}
}

// Run tries a policy on a table.
func Run(p *policy.Policy, all []Case) []Result {
	results := make([]Result, len(all))
	for i, c := range all {
		got := p.Explain(c.Who, c.Action, c.On)
		results[i] = Result{c, got, c.differs(got)}
	}
	return results
}

func (c *Case) differs(got policy.Explanation) string {
	code := codeOf(got.Err)
	switch {
	case c.Allowed && got.Err != nil:
		return "refused: " + code
	case !c.Allowed && got.Err == nil:
		return "allowed"
	case c.Code != "" && c.Code != code:
		return "refused, but with " + code
	default:
		return c.differsIn(got.Decision)
	}
}

func (c *Case) differsIn(d policy.Decision) string {
	switch {
	case c.Mode != "" && c.Mode != string(d.Mode):
		return "mode " + string(d.Mode)
	case c.Scope != "" && c.Scope != d.Scope:
		return "scope " + d.Scope
	case c.ExpiresIn != 0 && c.ExpiresIn != d.Lease.ExpiresIn:
		return "expires in " + d.Lease.ExpiresIn.String()
	default:
		return ""
	}
}

func codeOf(err error) string {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return string(r.Code)
	}
	return ""
}
