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

// The actions of a grant: on topics, scopes, consumer groups, transactional ids, principals (access), or as such.
const (
	ActionEncrypt     Action = "encrypt"
	ActionDecrypt     Action = "decrypt"
	ActionRotate      Action = "rotate"
	ActionDestroy     Action = "destroy"
	ActionCertificate Action = "certificate"
	ActionRevoke      Action = "revoke"
	ActionAdmin       Action = "admin"

	// What a sidecar asks for on behalf of those whom it serves.
	ActionRead        Action = "read"
	ActionWrite       Action = "write"
	ActionManage      Action = "manage"
	ActionDescribe    Action = "describe"
	ActionGroup       Action = "group"
	ActionTransaction Action = "transaction"
	ActionCluster     Action = "cluster"

	// ActionAccess is the right to ask for these.
	ActionAccess Action = "access"
)

// Actions are all of them.
var Actions = []Action{
	ActionEncrypt, ActionDecrypt, ActionRotate, ActionDestroy, ActionCertificate, ActionRevoke, ActionAdmin,
	ActionRead, ActionWrite, ActionManage, ActionDescribe, ActionGroup, ActionTransaction, ActionCluster, ActionAccess,
}

// Kind says what an action is granted on: the member of a case, or of a request, that names one.
type Kind string

// The kinds. Nothing stands for actions that are granted as such.
const (
	Nothing       Kind = ""
	OnTopic       Kind = "topic"
	OnScope       Kind = "scope"
	OnGroup       Kind = "group"
	OnTransaction Kind = "transaction"
	OnPrincipal   Kind = "for"
)

// On tells what an action is granted on.
func (a Action) On() Kind {
	switch a {
	case ActionEncrypt, ActionDecrypt, ActionRead, ActionWrite, ActionManage, ActionDescribe:
		return OnTopic
	case ActionRotate, ActionDestroy:
		return OnScope
	case ActionGroup:
		return OnGroup
	case ActionTransaction:
		return OnTransaction
	case ActionAccess:
		return OnPrincipal
	case ActionCertificate, ActionRevoke, ActionAdmin, ActionCluster:
		return Nothing
	}
	return Nothing
}

// OnTopic tells whether an action is granted on topics.
func (a Action) OnTopic() bool { return a.On() == OnTopic }

// OnScope tells whether an action is granted on scopes.
func (a Action) OnScope() bool { return a.On() == OnScope }

// OnKey tells whether an action gives data keys.
func (a Action) OnKey() bool { return a == ActionEncrypt || a == ActionDecrypt }

// InKafka tells whether an action is one that sidecars ask for: what somebody may do with a Kafka cluster.
func (a Action) InKafka() bool {
	switch a {
	case ActionRead, ActionWrite, ActionManage, ActionDescribe, ActionGroup, ActionTransaction, ActionCluster:
		return true
	case ActionEncrypt, ActionDecrypt, ActionRotate, ActionDestroy, ActionCertificate, ActionRevoke, ActionAdmin, ActionAccess:
		return false
	}
	return false
}

// HasLease tells whether what an action gives is for a time that the policy's lease says.
func (a Action) HasLease() bool { return a.OnKey() || a.InKafka() }

// Asker is who asks, when, and from where. Conditions of the policy see all of it.
type Asker struct {
	Principal   string
	Time        time.Time         // zero: now
	Remote      netip.Addr        // zero: not known
	Certificate *x509.Certificate // nil: none was shown
	Claims      map[string]any    // of the JWT; nil: none was shown
	Process     *Process          // on the sidecar's host; nil: not known
}

// Process is a program at the other end of a loopback connection, as its sidecar saw it.
type Process struct {
	UID        int64
	Executable string            // path
	SHA256     string            // of the executable, in hexadecimal
	Labels     map[string]string // of the sidecar
}

// ask is one question to the policy.
type ask struct {
	Asker
	action Action
	topic  string // of actions on topics
	scope  string // of actions on scopes, and the one that a topic maps to
	name   string // of a group, a transactional id, or a principal, by the action

	anyName bool // whatever name the grant is for

	variables map[string]any // for conditions; made when the first one is looked at
}

func newAsk(who Asker, action Action, topic, scope string) *ask {
	if who.Time.IsZero() {
		who.Time = time.Now()
	}
	return &ask{Asker: who, action: action, topic: topic, scope: scope}
}

// newAskOn makes a question about what is not a topic or a scope.
func newAskOn(who Asker, action Action, name string) *ask {
	a := newAsk(who, action, "", "")
	a.name = name
	return a
}

func (a *ask) refused() error {
	return refusal.New(refusal.NotAuthorized, "%q has no grant to %s%s at this time", a.Principal, a.action, a.about())
}

// about names what is asked for, for messages.
func (a *ask) about() string {
	switch a.action.On() {
	case OnTopic:
		return " topic " + quoted(a.topic)
	case OnScope:
		return " scope " + quoted(a.scope)
	case OnGroup, OnTransaction:
		return " " + quoted(a.name)
	case OnPrincipal:
		return " for " + quoted(a.name)
	case Nothing:
	}
	return ""
}
