// Explaining a decision: what became of every grant, and of the topic.

package policy

import "fmt"

// Step is what became of one rule that was looked at.
type Step struct {
	Rule    string `json:"rule"` // "grant 2 (name)", "topic rule 1"
	Line    int    `json:"line"`
	Verdict string `json:"verdict"`
	Decides bool   `json:"decides"`
}

// Explanation is a decision and how it came about.
type Explanation struct {
	Steps    []Step
	Decision Decision // of actions on topics, when allowed
	Err      error    // nil: allowed; else the refusal that a call would get
}

// Explain decides about an action as a call would be decided about. name is a topic, a scope, or empty, by the action.
func (p *Policy) Explain(who Asker, action Action, name string) Explanation {
	var e Explanation
	a := newAsk(who, action, "", "")
	switch {
	case action.OnTopic():
		a.topic, a.scope = name, p.ruleFor(name).scopeOf(name)
		e.Decision, e.Err = p.decideTopic(a.Asker, action, name)
	case action.InKafka():
		a.name = name
		e.Decision, e.Err = p.Access(a.Asker, action, name)
	case action == ActionAccess:
		a.name = name
		e.Err = p.MayAsk(a.Asker, name)
	case action == ActionRotate:
		a.scope = name
		e.Err = p.Rotate(a.Asker, name)
	case action == ActionCertificate:
		var granted CertificateGrant
		granted, e.Err = p.Certificate(a.Asker)
		e.Decision.Lease.ExpiresIn = granted.Lifetime
	default:
		a.scope = name
		e.Err = p.Allows(a.Asker, action, name)
	}
	_, _, err := p.grantFor(a, func(g *grant, v verdict) { e.Steps = append(e.Steps, stepOf(g, v)) })
	if err == nil && action.OnTopic() {
		e.Steps = append(e.Steps, p.topicStep(name))
	}
	return e
}

// decideTopic decides as the call does that the action belongs to.
func (p *Policy) decideTopic(who Asker, action Action, topic string) (Decision, error) {
	if action.InKafka() {
		return p.Access(who, action, topic)
	}
	return p.Topic(who, action, topic)
}

func stepOf(g *grant, v verdict) Step {
	s := Step{Rule: g.title(), Line: g.line, Verdict: string(v.reason), Decides: v.reason == matches || v.failed != nil}
	if v.failed != nil {
		s.Verdict += ": " + v.failed.Error()
	}
	return s
}

func (p *Policy) topicStep(topic string) Step {
	rule := p.ruleFor(topic)
	if rule == nil {
		return Step{Rule: "topics", Verdict: "no rule names the topic", Decides: true}
	}
	verdict := fmt.Sprintf("mode %s, scope %s", rule.mode, rule.scopeOf(topic))
	return Step{Rule: fmt.Sprintf("topic rule %d", rule.number), Line: rule.line, Verdict: verdict, Decides: true}
}
