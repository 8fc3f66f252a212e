// Package policy decides who may do what (spec/policy.md). The first rule that matches decides; what no rule names is
// refused. A Policy never changes once it is loaded, so that any number of goroutines may ask it.
package policy

import (
	"strconv"
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

// until cuts a lease that would outlive what granted it [CL-POL-011]; a zero end cuts nothing.
func (l Lease) until(end, now time.Time) Lease {
	if end.IsZero() || !now.Add(l.ExpiresIn).After(end) {
		return l
	}
	expires := max(MinLease, end.Sub(now).Truncate(time.Second))
	return Lease{ExpiresIn: expires, RefreshIn: min(l.RefreshIn, halfOf(expires))}
}

// Decision is what holds for a principal's action on a topic.
type Decision struct {
	Mode            Mode
	Scope           string
	AcceptPlaintext bool
	Lease           Lease     // cut to Ends
	Ends            time.Time // when the grant ends by its dates and windows; zero: not foreseen
}

// Policy is a loaded policy file.
type Policy struct {
	topics   []topicRule
	grants   []grant
	lease    Lease
	rotation []rotationRule
	text     string
	loaded   time.Time
}

type topicRule struct {
	number, line    int // from 1, as in the file
	topics          []glob
	mode            Mode
	scope           string // empty: each topic is its own scope
	acceptPlaintext bool
}

// Topic decides about an action (encrypt or decrypt) on a topic. The grant is looked at first, so that who has none
// learns nothing about topics [CL-POL-007].
//
// Errors: not-authorized, topic-unknown.
func (p *Policy) Topic(who Asker, action Action, topic string) (Decision, error) {
	rule := p.ruleFor(topic)
	a := newAsk(who, action, topic, rule.scopeOf(topic))
	if !action.OnTopic() {
		return Decision{}, a.refused()
	}
	granted, end, err := p.grantFor(a, nil)
	if err != nil {
		return Decision{}, err
	}
	if rule == nil {
		return Decision{}, refusal.New(refusal.TopicUnknown, "no rule of the policy names topic %q: add one", topic)
	}
	return Decision{
		Mode:            rule.mode,
		Scope:           rule.scopeOf(topic),
		AcceptPlaintext: rule.acceptPlaintext || rule.mode == Clear,
		Lease:           p.leaseOf(granted).until(end, a.Time),
		Ends:            end,
	}, nil
}

// Rotate decides whether somebody may rotate a scope. A scope that the policy gives to no topic is refused, so that a
// slip of the pen makes no keys.
//
// Errors: not-authorized, topic-unknown.
func (p *Policy) Rotate(who Asker, scope string) error {
	if err := p.Allows(who, ActionRotate, scope); err != nil {
		return err
	}
	if !p.hasScope(scope) {
		return refusal.New(refusal.TopicUnknown, "no rule of the policy encrypts a topic under scope %q", scope)
	}
	return nil
}

// Allows decides about an action that is not on a topic. scope is empty for actions that are not on a scope either.
//
// Errors: not-authorized.
func (p *Policy) Allows(who Asker, action Action, scope string) error {
	a := newAsk(who, action, "", scope)
	if on := action.On(); on != Nothing && on != OnScope || action.OnScope() != (scope != "") {
		return a.refused()
	}
	_, _, err := p.grantFor(a, nil)
	return err
}

// CertificateGrant says what certificate somebody may have for the name that he has.
type CertificateGrant struct {
	Lifetime time.Duration // it ends with what granted it, as a lease does
	Servers  ServerNames   // what may stand in it beside his name
}

// Certificate decides whether somebody may have a certificate.
//
// Errors: not-authorized.
func (p *Policy) Certificate(who Asker) (CertificateGrant, error) {
	a := newAsk(who, ActionCertificate, "", "")
	granted, end, err := p.grantFor(a, nil)
	if err != nil {
		return CertificateGrant{}, err
	}
	return CertificateGrant{Lease{ExpiresIn: granted.lifetime}.until(end, a.Time).ExpiresIn, granted.serverNames}, nil
}

// grantFor gives the first grant that matches, and when it ends. trace, if not nil, is told what became of every grant
// up to that one.
func (p *Policy) grantFor(a *ask, trace func(*grant, verdict)) (*grant, time.Time, error) {
	for i := range p.grants {
		g := &p.grants[i]
		v := g.verdict(a)
		if trace != nil {
			trace(g, v)
		}
		switch {
		case v.failed != nil:
			return nil, v.end, refusal.Because(refusal.NotAuthorized, v.failed, "the condition of "+g.title()+" of the policy could not be evaluated, which refuses")
		case v.reason == matches:
			return g, v.end, nil
		}
	}
	return nil, time.Time{}, a.refused()
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

// scopeOf gives the scope of a topic of this rule; nil has none.
func (r *topicRule) scopeOf(topic string) string {
	switch {
	case r == nil:
		return ""
	case r.scope != "":
		return r.scope
	default:
		return topic
	}
}

func quoted(name string) string { return strconv.Quote(name) }
