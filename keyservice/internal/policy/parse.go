// Reads the policy file: strictly, with the line of the mistake [CL-POL-005].

package policy

import (
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// maxRules bounds topic rules and grants together (spec/limits.md).
const maxRules = 10_000

type (
	node   = strictyaml.Node
	fields = map[string]strictyaml.Field
)

// Parse reads a policy. file is the name that errors show; an error is a *strictyaml.Error and nothing of the policy is
// usable then.
func Parse(file string, data []byte) (*Policy, error) {
	root, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	p := &Policy{lease: withDefaultRefresh(Lease{ExpiresIn: DefaultLease})}
	err = root.Members(fields{
		"version": {Required: true, Read: readVersion},
		"lease":   {Read: func(n node) error { return readLease(n, &p.lease) }},
		"topics":  {Required: true, Read: p.readTopics},
		"grants":  {Required: true, Read: p.readGrants},
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func readVersion(n node) error {
	_, err := n.Integer(1, 1)
	return err
}

func readLease(n node, lease *Lease) error {
	var read Lease
	err := n.Members(fields{
		"expires_in": {Required: true, Read: leaseTime(&read.ExpiresIn)},
		"refresh_in": {Read: leaseTime(&read.RefreshIn)},
	})
	if err != nil {
		return err
	}
	read = withDefaultRefresh(read)
	if read.RefreshIn > read.ExpiresIn {
		return n.Errorf("refresh_in %s is more than expires_in %s", read.RefreshIn, read.ExpiresIn)
	}
	*lease = read
	return nil
}

func leaseTime(target *time.Duration) func(node) error {
	return func(n node) (err error) {
		*target, err = n.Duration(MinLease, MaxLease, time.Second)
		return err
	}
}

// withDefaultRefresh sets refresh_in to half of expires_in, in whole seconds, at least one.
func withDefaultRefresh(l Lease) Lease {
	if l.RefreshIn == 0 {
		l.RefreshIn = max(MinLease, (l.ExpiresIn / 2).Truncate(time.Second))
	}
	return l
}

func (p *Policy) readTopics(n node) error {
	_, err := n.List(func(item node) error {
		rule, err := readTopicRule(item)
		p.topics = append(p.topics, rule)
		return err
	})
	return p.checkRules(n, err)
}

func (p *Policy) readGrants(n node) error {
	_, err := n.List(func(item node) error {
		g, err := readGrant(item)
		p.grants = append(p.grants, g)
		return err
	})
	return p.checkRules(n, err)
}

func (p *Policy) checkRules(n node, err error) error {
	if rules := len(p.topics) + len(p.grants); err == nil && rules > maxRules {
		return n.Errorf("the policy has more than %d rules", maxRules)
	}
	return err
}

func readTopicRule(n node) (topicRule, error) {
	var rule topicRule
	var plaintext string
	err := n.Members(fields{
		"topics":    {Required: true, Read: globList(&rule.topics, checkTopicPattern, false)},
		"mode":      {Required: true, Read: oneOf(&rule.mode, Encrypt, Clear, Forbid)},
		"scope":     {Read: scopeInto(&rule.scope)},
		"plaintext": {Read: oneOf(&plaintext, "reject", "accept")},
	})
	if err == nil && plaintext != "" && rule.mode != Encrypt { // [CL-POL-008]
		err = n.Errorf("plaintext goes with mode encrypt only, not with %s", rule.mode)
	}
	rule.acceptPlaintext = plaintext == "accept"
	return rule, err
}

func readGrant(n node) (grant, error) {
	g := grant{actions: map[Action]bool{}}
	err := n.Members(fields{
		"principals": {Required: true, Read: globList(&g.principals, names.CheckPrincipal, true)},
		"actions":    {Required: true, Read: g.readActions},
		"topics":     {Read: globList(&g.topics, checkTopicPattern, false)},
		"scopes":     {Read: globList(&g.scopes, checkTopicPattern, false)},
		"lease": {Read: func(n node) error {
			g.lease = new(Lease)
			return readLease(n, g.lease)
		}},
	})
	if err == nil {
		err = g.check(n)
	}
	return g, err
}

func (g *grant) readActions(n node) error {
	_, err := n.List(func(item node) error {
		var action Action
		if err := oneOf(&action, ActionEncrypt, ActionDecrypt, ActionRotate)(item); err != nil {
			return err
		}
		if g.actions[action] {
			return item.Errorf("action %s is given twice", action)
		}
		g.actions[action] = true
		return nil
	})
	return err
}

// check refuses a grant that would silently allow less or more than it seems to.
func (g *grant) check(n node) error {
	onTopics := g.actions[ActionEncrypt] || g.actions[ActionDecrypt]
	onScopes := g.actions[ActionRotate]
	switch {
	case onTopics && g.topics == nil:
		return n.Errorf("encrypt and decrypt are granted on topics: \"topics\" is missing")
	case !onTopics && g.topics != nil:
		return n.Errorf("rotate is granted on scopes: \"topics\" has no meaning here")
	case onScopes && g.scopes == nil:
		return n.Errorf("rotate is granted on scopes: \"scopes\" is missing")
	case !onScopes && g.scopes != nil:
		return n.Errorf("encrypt and decrypt are granted on topics: \"scopes\" has no meaning here")
	case !onTopics && g.lease != nil:
		return n.Errorf("rotate has no lease")
	}
	return nil
}
