// Reading the two lists of rules. Mistakes name the rule beside the line.

package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

func (p *Policy) readTopics(n node) error {
	_, err := n.List(func(item node) error {
		rule, err := readTopicRule(item)
		rule.number, rule.line = len(p.topics)+1, item.Line()
		p.topics = append(p.topics, rule)
		return inRule(err, fmt.Sprintf("topic rule %d", rule.number))
	})
	return p.checkRules(n, err)
}

func (p *Policy) readGrants(n node) error {
	_, err := n.List(func(item node) error {
		g := grant{number: len(p.grants) + 1, line: item.Line(), actions: map[Action]bool{}, lifetime: DefaultLifetime}
		err := g.read(item)
		p.grants = append(p.grants, g)
		return inRule(err, g.title())
	})
	return p.checkRules(n, err)
}

// inRule names the rule in which a mistake stands.
func inRule(err error, rule string) error {
	if mistake, ok := errors.AsType[*strictyaml.Error](err); ok {
		return &strictyaml.Error{File: mistake.File, Line: mistake.Line, Text: rule + ": " + mistake.Text}
	}
	return err
}

func (p *Policy) checkRules(n node, err error) error {
	if rules := len(p.topics) + len(p.grants) + len(p.rotation); err == nil && rules > maxRules {
		return n.Errorf("the policy has more than %d rules", maxRules)
	}
	return err
}

func readTopicRule(n node) (topicRule, error) {
	var rule topicRule
	var plaintext string
	err := n.Members(fields{
		"topics":    {Required: true, Read: globList(&rule.topics, checkTopicPattern, anything)},
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

func (g *grant) read(n node) error {
	hasLifetime := false
	err := n.Members(fields{
		"name":         field(g.readName),
		"principals":   {Required: true, Read: globList(&g.principals, checkPrincipalPattern, inPrincipal)},
		"actions":      {Required: true, Read: g.readActions},
		"topics":       {Read: globList(&g.topics, checkTopicPattern, anything)},
		"scopes":       {Read: globList(&g.scopes, checkTopicPattern, anything)},
		"groups":       {Read: globList(&g.groups, checkNamePattern, anything)},
		"transactions": {Read: globList(&g.ids, checkNamePattern, anything)},
		"for":          {Read: globList(&g.subjects, checkPrincipalPattern, inPrincipal)},
		"lease": {Read: func(n node) error {
			g.lease = new(Lease)
			return readLease(n, g.lease)
		}},
		"lifetime": {Read: func(n node) (err error) {
			hasLifetime = true
			g.lifetime, err = n.Duration(MinLifetime, MaxLifetime, time.Second)
			return err
		}},
		"server_names": field(g.serverNames.read),
		"not_before":   strictyaml.InstantInto(&g.from),
		"not_after":    strictyaml.InstantInto(&g.to),
		"windows":      field(g.readWindows),
		"when":         field(g.readCondition),
	})
	if err == nil {
		err = g.check(n, hasLifetime)
	}
	return err
}

// readName takes a title for people; errors and explanations show it.
func (g *grant) readName(n node) error {
	text, err := n.Text()
	if err == nil && names.CheckPrincipal(text) != nil {
		err = n.Errorf("invalid name: %v", names.CheckPrincipal(text))
	}
	g.name = text
	return err
}

func (g *grant) readActions(n node) error {
	_, err := n.List(func(item node) error {
		var action Action
		if err := oneOf(&action, Actions...)(item); err != nil {
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

// maxWindows bounds the windows of one grant (spec/limits.md).
const maxWindows = 32

func (g *grant) readWindows(n node) error {
	count, err := n.List(func(item node) error {
		w, err := readWindow(item)
		g.windows = append(g.windows, w)
		return err
	})
	if err == nil && count > maxWindows {
		err = n.Errorf("%d windows are more than %d", count, maxWindows)
	}
	return err
}

func (g *grant) readCondition(n node) (err error) {
	g.condition, err = readCondition(n)
	return err
}

// check refuses a grant that would silently allow less or more than it seems to.
func (g *grant) check(n node, hasLifetime bool) error {
	if err := g.checkNames(n); err != nil {
		return err
	}
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{!g.any(Action.HasLease) && g.lease != nil, "only keys, and what a sidecar asks for, have a lease"},
		{!g.actions[ActionCertificate] && hasLifetime, "only certificate has a lifetime"},
		{!g.actions[ActionCertificate] && g.serverNames.given, "only certificate has server_names"},
		{!g.to.IsZero() && !g.from.Before(g.to), "not_after is not later than not_before"},
	} {
		if rule.broken {
			return n.Errorf("%s", rule.text)
		}
	}
	return nil
}

// checkNames sees that the grant names what its actions are on, and nothing else.
func (g *grant) checkNames(n node) error {
	for kind, globs := range map[Kind][]glob{OnTopic: g.topics, OnScope: g.scopes, OnGroup: g.groups, OnTransaction: g.ids, OnPrincipal: g.subjects} {
		member := string(kind) + "s"
		if kind == OnPrincipal {
			member = string(kind)
		}
		switch needed := g.any(func(a Action) bool { return a.On() == kind }); {
		case needed && globs == nil:
			return n.Errorf("%s: %q is missing", actionsOn(kind), member)
		case !needed && globs != nil:
			return n.Errorf("%q goes with %s only: it has no meaning here", member, actionsOn(kind))
		}
	}
	return nil
}

// actionsOn lists the actions of a kind, for messages.
func actionsOn(kind Kind) string {
	var texts []string
	for _, a := range Actions {
		if a.On() == kind {
			texts = append(texts, string(a))
		}
	}
	return strings.Join(texts, ", ")
}

// any tells whether one of the actions is of a kind.
func (g *grant) any(is func(Action) bool) bool {
	for action := range g.actions {
		if is(action) {
			return true
		}
	}
	return false
}
