// Who asks, and for what.

package policy

import (
	"crypto/x509"
	"net/netip"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Action is what a grant allows.
type Action string

// The actions of a grant. Encrypt and decrypt are granted on topics, rotate and destroy on scopes, the others as such.
const (
	ActionEncrypt     Action = "encrypt"
	ActionDecrypt     Action = "decrypt"
	ActionRotate      Action = "rotate"
	ActionDestroy     Action = "destroy"
	ActionCertificate Action = "certificate"
	ActionRevoke      Action = "revoke"
	ActionAdmin       Action = "admin"
)

// Actions are all of them.
var Actions = []Action{
	ActionEncrypt, ActionDecrypt, ActionRotate, ActionDestroy, ActionCertificate, ActionRevoke, ActionAdmin,
}

// OnTopic tells whether an action is granted on topics.
func (a Action) OnTopic() bool { return a == ActionEncrypt || a == ActionDecrypt }

// OnScope tells whether an action is granted on scopes.
func (a Action) OnScope() bool { return a == ActionRotate || a == ActionDestroy }

// Asker is who asks, when, and from where. Conditions of the policy see all of it.
type Asker struct {
	Principal   string
	Time        time.Time         // zero: now
	Remote      netip.Addr        // zero: not known
	Certificate *x509.Certificate // nil: none was shown
	Claims      map[string]any    // of the JWT; nil: none was shown
}

// ask is one question to the policy.
type ask struct {
	Asker
	action Action
	topic  string // of actions on topics
	scope  string // of actions on scopes, and the one that a topic maps to

	variables map[string]any // for conditions; made when the first one is looked at
}

func newAsk(who Asker, action Action, topic, scope string) *ask {
	if who.Time.IsZero() {
		who.Time = time.Now()
	}
	return &ask{Asker: who, action: action, topic: topic, scope: scope}
}

func (a *ask) refused() error {
	return refusal.New(refusal.NotAuthorized, "%q has no grant to %s%s at this time", a.Principal, a.action, a.about())
}

// about names what is asked for, for messages.
func (a *ask) about() string {
	switch {
	case a.action.OnTopic():
		return " topic " + quoted(a.topic)
	case a.action.OnScope():
		return " scope " + quoted(a.scope)
	default:
		return ""
	}
}
