// Package policy decides who may do what (spec/policy.md). The first rule that matches decides; what no rule names is
// refused. A Policy never changes once it is loaded, so that any number of goroutines may ask it.
package policy

import (
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Mode says what becomes of a topic's records.
type Mode string

// The modes of a topic.
const (
	Encrypt Mode = "encrypt"
	Clear   Mode = "clear"
	Forbid  Mode = "forbid"
)

// Action is what a grant allows.
type Action string

// The actions of a grant. Encrypt and decrypt are granted on topics, rotate on scopes.
const (
	ActionEncrypt Action = "encrypt"
	ActionDecrypt Action = "decrypt"
	ActionRotate  Action = "rotate"
)

// Limits of a lease, and the one that holds when the file gives none.
const (
	MinLease     = time.Second
	MaxLease     = 604_800 * time.Second
	DefaultLease = 5 * time.Minute
)

// Lease is how long a client may use an answer: whole seconds, 1 <= RefreshIn <= ExpiresIn.
type Lease struct {
	RefreshIn time.Duration
	ExpiresIn time.Duration
}

// Decision is what holds for a principal's action on a topic.
type Decision struct {
	Mode            Mode
	Scope           string
	AcceptPlaintext bool
	Lease           Lease
}

// Policy is a loaded policy file.
type Policy struct {
	topics []topicRule
	grants []grant
	lease  Lease
}

type topicRule struct {
	topics          []glob
	mode            Mode
	scope           string // empty: each topic is its own scope
	acceptPlaintext bool
}

type grant struct {
	principals []glob
	actions    map[Action]bool
	topics     []glob
	scopes     []glob
	lease      *Lease // nil: the policy's
}

// Topic decides about an action (encrypt or decrypt) on a topic. The grant is looked at first, so that who has none
// learns nothing about topics [CL-POL-007].
//
// Errors: not-authorized, topic-unknown.
func (p *Policy) Topic(principal string, action Action, topic string) (Decision, error) {
	granted := p.grantFor(principal, action, func(g *grant) []glob { return g.topics }, topic)
	if granted == nil {
		return Decision{}, notAuthorized(principal, action, "topic", topic)
	}
	rule := p.ruleFor(topic)
	if rule == nil {
		return Decision{}, refusal.New(refusal.TopicUnknown, "no rule of the policy names topic %q: add one", topic)
	}
	return Decision{
		Mode:            rule.mode,
		Scope:           rule.scopeOf(topic),
		AcceptPlaintext: rule.acceptPlaintext || rule.mode == Clear,
		Lease:           p.leaseOf(granted),
	}, nil
}

// Rotate decides whether the principal may rotate a scope. A scope that the policy gives to no topic is refused, so
// that a slip of the pen makes no keys.
//
// Errors: not-authorized, topic-unknown.
func (p *Policy) Rotate(principal, scope string) error {
	if p.grantFor(principal, ActionRotate, func(g *grant) []glob { return g.scopes }, scope) == nil {
		return notAuthorized(principal, ActionRotate, "scope", scope)
	}
	if !p.hasScope(scope) {
		return refusal.New(refusal.TopicUnknown, "no rule of the policy encrypts a topic under scope %q", scope)
	}
	return nil
}

func (p *Policy) grantFor(principal string, action Action, on func(*grant) []glob, name string) *grant {
	for i := range p.grants {
		g := &p.grants[i]
		if g.actions[action] && matchesAny(on(g), name) && matchesAny(g.principals, principal) {
			return g
		}
	}
	return nil
}

func (p *Policy) ruleFor(topic string) *topicRule {
	for i := range p.topics {
		if matchesAny(p.topics[i].topics, topic) {
			return &p.topics[i]
		}
	}
	return nil
}

func (p *Policy) hasScope(scope string) bool {
	for i := range p.topics {
		if p.topics[i].mode == Encrypt && p.topics[i].scope == scope {
			return true
		}
	}
	rule := p.ruleFor(scope)
	return rule != nil && rule.mode == Encrypt && rule.scope == ""
}

func (p *Policy) leaseOf(g *grant) Lease {
	if g.lease != nil {
		return *g.lease
	}
	return p.lease
}

func (r *topicRule) scopeOf(topic string) string {
	if r.scope != "" {
		return r.scope
	}
	return topic
}

func notAuthorized(principal string, action Action, kind, name string) error {
	return refusal.New(refusal.NotAuthorized, "%q has no grant to %s %s %q", principal, action, kind, name)
}
