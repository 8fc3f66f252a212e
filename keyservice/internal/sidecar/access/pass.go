// One look at a request: what of it is allowed, as far as that is known. A look changes nothing; when something is not known yet, it is
// asked for and the request is looked at again.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// Check is one thing that somebody wants to do: an action of the policy, and what it is on. Name is empty for cluster.
type Check struct {
	Action policy.Action
	Name   string
}

// answer is what is known of a check.
type answer uint8

const (
	unknown answer = iota
	allowed
	refused
	unsaid // the key service does not say
)

type topicID = [16]byte

// pass is one look.
type pass struct {
	look    func(Check) answer
	topicOf func(topicID) (name string, asked bool)
	later   int16 // the code for what is unsaid

	missing    []Check   // what is not known
	unresolved []topicID // whose topic is not known
	used       []Check   // what was found allowed
	denied     []Check   // what was found refused
}

// complete tells whether everything was known.
func (p *pass) complete() bool { return len(p.missing) == 0 && len(p.unresolved) == 0 }

// can gives 0, or the code with which an action is refused: the given one, or that for what is unsaid.
func (p *pass) can(action policy.Action, name string, code int16) int16 {
	check := Check{action, name}
	if !usable(check) {
		p.denied = append(p.denied, check)
		return code
	}
	switch p.look(check) {
	case allowed:
		p.used = append(p.used, check)
		return 0
	case unsaid:
		p.denied = append(p.denied, check)
		return p.later
	case refused:
		p.denied = append(p.denied, check)
	case unknown:
		p.missing = append(p.missing, check)
	}
	return code
}

// usable tells whether the key service can be asked: what cannot be a name is nobody's.
func usable(c Check) bool {
	switch {
	case c.Action.OnTopic():
		return names.CheckTopic(c.Name) == nil
	case c.Action.On() == policy.Nothing:
		return c.Name == ""
	default:
		return names.CheckPrincipal(c.Name) == nil
	}
}

// topic gives 0, or the code with which an action on a topic is refused. The topic has a name, or else an id.
func (p *pass) topic(action policy.Action, name string, id topicID) int16 {
	if name == "" && id != (topicID{}) {
		found, asked := p.topicOf(id)
		switch {
		case found == "" && !asked:
			p.unresolved = append(p.unresolved, id)
			return topicIDUnknown
		case found == "":
			return topicIDUnknown
		}
		name = found
	}
	return p.can(action, name, topicRefused)
}

func (p *pass) group(name string) int16 { return p.can(policy.ActionGroup, name, groupRefused) }

// transaction gives 0 also where there is no transactional id.
func (p *pass) transaction(id *string) int16 {
	if id == nil {
		return 0
	}
	return p.can(policy.ActionTransaction, *id, transactionRefused)
}

func (p *pass) cluster() int16 { return p.can(policy.ActionCluster, "", clusterRefused) }

// consumer refuses what only brokers do: they say their id.
func (p *pass) consumer(replica int32) int16 {
	if replica >= 0 {
		p.denied = append(p.denied, Check{Action: policy.ActionCluster})
		return clusterRefused
	}
	return 0
}

// first gives the first code that is not 0.
func first(codes ...int16) int16 {
	for _, code := range codes {
		if code != 0 {
			return code
		}
	}
	return 0
}

// verdict is what becomes of a request. Its zero value lets it through as it is.
type verdict struct {
	request kmsg.Request        // to send in place of it; nil: as it is
	answer  kmsg.Response       // instead of sending it; nil: it is sent
	merge   func(kmsg.Response) // puts what was refused into the broker's answer; nil: nothing was

	// deliver looks at the answer when it comes, and gives what cuts it to what is allowed then, or nil. nil: nothing to look at.
	deliver func(*pass, kmsg.Response) (cut func())
}

// judge makes a rule of a function for one type of request.
func judge[Q kmsg.Request](f func(*pass, Q) verdict) rule {
	return rule{judge: func(p *pass, r kmsg.Request) verdict {
		q, ok := r.(Q)
		if !ok {
			return verdict{answer: r.ResponseKind()} // of no type that its key has: cannot be
		}
		return f(p, q)
	}}
}

// whole is a rule for requests that are allowed or refused as one.
func whole[Q kmsg.Request, R kmsg.Response](need func(*pass, Q) int16, refuse func(Q, R, int16)) rule {
	return judge(func(p *pass, q Q) verdict {
		code := need(p, q)
		if code == 0 {
			return verdict{}
		}
		return answered(q, func(r R) { refuse(q, r, code) })
	})
}

// answered makes an answer in the broker's place.
func answered[R kmsg.Response](q kmsg.Request, fill func(R)) verdict {
	made := q.ResponseKind()
	if r, ok := made.(R); ok {
		fill(r)
	}
	return verdict{answer: made}
}

// part lets through what is left of a request, and merges the refusals into the answer.
func part[R kmsg.Response](rest kmsg.Request, left int, refusals bool, merge func(R)) verdict {
	switch {
	case !refusals:
		return verdict{}
	case left == 0:
		return answered(rest, merge)
	}
	return verdict{request: rest, merge: func(r kmsg.Response) {
		if typed, ok := r.(R); ok {
			merge(typed)
		}
	}}
}

// filter is a rule for requests that need nothing, and whose answers are cut to what is allowed.
func filter[R kmsg.Response](look func(*pass, R) func()) rule {
	return rule{judge: func(*pass, kmsg.Request) verdict { return verdict{deliver: deliver(look)} }}
}

func deliver[R kmsg.Response](look func(*pass, R) func()) func(*pass, kmsg.Response) func() {
	return func(p *pass, r kmsg.Response) func() {
		if typed, ok := r.(R); ok {
			return look(p, typed)
		}
		return nil
	}
}
