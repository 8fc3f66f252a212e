// What somebody may do with a Kafka cluster: asked by sidecars, for those whom they serve.

package policy

import "github.com/cipherlane/cipherlane/keyservice/internal/refusal"

// Access decides about an action in Kafka (Action.InKafka) on a topic, a group or a transactional id; name is empty for
// cluster. Topics are decided about as for keys: an unknown one is refused, and so is one of mode forbid [CL-POL-016].
//
// Errors: not-authorized, topic-unknown, topic-forbidden.
func (p *Policy) Access(who Asker, action Action, name string) (Decision, error) {
	switch {
	case !action.InKafka() || (action.On() == Nothing) != (name == ""):
		return Decision{}, newAskOn(who, action, name).refused()
	case action.OnTopic():
		d, err := p.Topic(who, action, name)
		if err == nil && d.Mode == Forbid {
			return Decision{}, refusal.New(refusal.TopicForbidden, "the policy forbids topic %q", name)
		}
		return d, err
	}
	a := newAskOn(who, action, name)
	granted, end, err := p.grantFor(a, nil)
	if err != nil {
		return Decision{}, err
	}
	return Decision{Lease: p.leaseOf(granted).until(end, a.Time), Ends: end}, nil
}

// MayAsk decides whether somebody may ask for what a subject may do [CL-POL-017].
//
// Errors: not-authorized.
func (p *Policy) MayAsk(who Asker, subject string) error {
	_, _, err := p.grantFor(newAskOn(who, ActionAccess, subject), nil)
	return err
}

// MayAskForSomebody decides whether there is any principal for whom somebody may ask.
//
// Errors: not-authorized.
func (p *Policy) MayAskForSomebody(who Asker) error {
	a := newAskOn(who, ActionAccess, "")
	a.anyName = true
	_, _, err := p.grantFor(a, nil)
	return err
}
