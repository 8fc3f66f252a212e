// Grants: principals, actions, what these are on, and when and under what condition they hold.

package policy

import (
	"fmt"
	"time"
)

// grant is a rule of the list grants.
type grant struct {
	number      int    // from 1, as in the file
	line        int    // of the file
	name        string // may be empty
	principals  []glob
	actions     map[Action]bool
	topics      []glob
	scopes      []glob
	groups      []glob
	ids         []glob        // transactional ids
	subjects    []glob        // principals for whom access may be asked
	lease       *Lease        // nil: the policy's
	lifetime    time.Duration // of certificates
	serverNames ServerNames
	from, to    time.Time  // zero: open
	windows     []window   // none: always
	condition   *condition // nil: none
}

// title names the grant in messages.
func (g *grant) title() string {
	if g.name == "" {
		return fmt.Sprintf("grant %d", g.number)
	}
	return fmt.Sprintf("grant %d (%s)", g.number, g.name)
}

// reason says why a grant does not match, or that it does.
type reason string

const (
	matches          reason = "matches"
	otherAction      reason = "grants other actions"
	otherName        reason = "names no such topic, scope or other thing"
	otherPrincipal   reason = "names no such principal"
	notYet           reason = "begins later (not_before)"
	over             reason = "has ended (not_after)"
	outsideOfWindows reason = "is outside of its windows"
	conditionFalse   reason = "its condition is false"
	conditionFailed  reason = "its condition could not be evaluated, which refuses"
)

// verdict is what became of one grant.
type verdict struct {
	reason reason
	end    time.Time // of the grant, when it matches; zero: not foreseen
	failed error     // why the condition could not be evaluated
}

// verdict looks at the cheap things first, and at the condition last: it is asked only of what it is about.
func (g *grant) verdict(a *ask) verdict {
	switch {
	case !g.gives(a.action):
		return verdict{reason: otherAction}
	case !g.names(a):
		return verdict{reason: otherName}
	case !matchesAny(g.principals, a.Principal):
		return verdict{reason: otherPrincipal}
	}
	end, reason := g.open(a.Time)
	if reason != matches || g.condition == nil {
		return verdict{reason: reason, end: end}
	}
	holds, err := g.condition.holds(a)
	switch {
	case err != nil:
		return verdict{reason: conditionFailed, failed: err}
	case !holds:
		return verdict{reason: conditionFalse}
	default:
		return verdict{reason: matches, end: end}
	}
}

// gives tells whether the grant has an action. Who may read, write or manage a topic may also see it, as in Kafka.
func (g *grant) gives(action Action) bool {
	if action == ActionDescribe && (g.actions[ActionRead] || g.actions[ActionWrite] || g.actions[ActionManage]) {
		return true
	}
	return g.actions[action]
}

// names tells whether the grant is about what is asked for.
func (g *grant) names(a *ask) bool {
	switch a.action.On() {
	case OnTopic:
		return matchesAny(g.topics, a.topic)
	case OnScope:
		return matchesAny(g.scopes, a.scope)
	case OnGroup:
		return matchesAny(g.groups, a.name)
	case OnTransaction:
		return matchesAny(g.ids, a.name)
	case OnPrincipal:
		return a.anyName || matchesAny(g.subjects, a.name)
	case Nothing:
	}
	return true
}

// open tells whether dates and windows let the grant hold now, and for how long. What would end within the shortest
// lease has ended [CL-POL-011].
func (g *grant) open(now time.Time) (time.Time, reason) {
	if now.Before(g.from) {
		return time.Time{}, notYet
	}
	if !g.to.IsZero() && g.to.Sub(now) < MinLease {
		return time.Time{}, over
	}
	if len(g.windows) == 0 {
		return g.to, matches
	}
	end := openUntil(g.windows, now)
	if end.Sub(now) < MinLease {
		return time.Time{}, outsideOfWindows
	}
	if !g.to.IsZero() && g.to.Before(end) {
		end = g.to
	}
	return end, matches
}
