// Requests about groups and transactions.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// Types of FindCoordinator.
const (
	groupCoordinator       int8 = 0
	transactionCoordinator int8 = 1
)

// severalCoordinators is the version from which FindCoordinator takes several keys.
const severalCoordinators = 4

func (p *pass) coordinator(kind int8, key string) int16 {
	switch kind {
	case groupCoordinator:
		return p.group(key)
	case transactionCoordinator:
		return p.transaction(&key)
	default: // of share groups' partitions: brokers only
		return p.cluster()
	}
}

func findCoordinator(p *pass, q *kmsg.FindCoordinatorRequest) verdict {
	if q.Version < severalCoordinators {
		code := p.coordinator(q.CoordinatorType, q.CoordinatorKey)
		if code == 0 {
			return verdict{}
		}
		return answered(q, func(r *kmsg.FindCoordinatorResponse) { r.ErrorCode, r.NodeID, r.Port = code, -1, -1 })
	}
	rest := *q
	left, refusals := sift(q.CoordinatorKeys, coordinators, func(key *string) int16 { return p.coordinator(q.CoordinatorType, *key) })
	rest.CoordinatorKeys = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.FindCoordinatorResponse) { r.Coordinators = refusals.into(r.Coordinators) })
}

var coordinators = entry[string, kmsg.FindCoordinatorResponseCoordinator, string]{
	asked:    self[string],
	answered: func(c *kmsg.FindCoordinatorResponseCoordinator) string { return c.Key },
	refuse: func(key *string, code int16) kmsg.FindCoordinatorResponseCoordinator {
		made := kmsg.NewFindCoordinatorResponseCoordinator()
		made.Key, made.ErrorCode, made.NodeID, made.Port = *key, code, -1, -1
		return made
	},
}

// listed is a rule for requests with a list of groups or transactional ids.
func listed[Q kmsg.Request, R kmsg.Response, A any](
	names func(Q) []string, with func(Q, []string) Q, answers func(R) *[]A, name func(*A) string, refuse func(name string, code int16) A, need func(*pass, string) int16,
) rule {
	e := entry[string, A, string]{asked: self[string], answered: name, refuse: func(n *string, code int16) A { return refuse(*n, code) }}
	return judge(func(p *pass, q Q) verdict {
		left, refusals := sift(names(q), e, func(n *string) int16 { return need(p, *n) })
		return part(with(q, left), len(left), refusals.any(), func(r R) { *answers(r) = refusals.into(*answers(r)) })
	})
}

func needGroup(p *pass, name string) int16 { return p.group(name) }

func needTransaction(p *pass, id string) int16 { return p.transaction(&id) }

// subscribed is the need of heartbeats that name topics.
func (p *pass) subscribed(group string, topics []string) int16 {
	code := p.group(group)
	for _, topic := range topics {
		code = first(code, p.topic(policy.ActionDescribe, topic, topicID{}))
	}
	return code
}

func streamsTopics(q *kmsg.StreamsGroupHeartbeatRequest) (all []string) {
	if q.Topology == nil {
		return nil
	}
	for i := range q.Topology.Subtopologies {
		s := &q.Topology.Subtopologies[i]
		all = append(append(all, s.SourceTopics...), s.RepartitionSinkTopics...)
		for _, list := range [][]kmsg.TopicInfo{s.StateChangelogTopics, s.RepartitionSourceTopics} {
			for j := range list {
				all = append(all, list[j].Topic)
			}
		}
	}
	return all
}

func shownGroups(p *pass, r *kmsg.ListGroupsResponse) func() {
	return keep(&r.Groups, func(g *kmsg.ListGroupsResponseGroup) bool { return p.may(policy.ActionGroup, g.Group) })
}

func shownTransactions(p *pass, r *kmsg.ListTransactionsResponse) func() {
	return keep(&r.TransactionStates, func(t *kmsg.ListTransactionsResponseTransactionState) bool {
		return p.may(policy.ActionTransaction, t.TransactionalID)
	})
}

// addPartitionsToTxn does nothing at all when something is refused, as Kafka does. From version 4 on only brokers ask for several
// transactions at once.
func addPartitionsToTxn(p *pass, q *kmsg.AddPartitionsToTxnRequest) verdict {
	if len(q.Transactions) > 0 {
		if code := p.cluster(); code != 0 {
			return answered(q, func(r *kmsg.AddPartitionsToTxnResponse) { r.ErrorCode = code })
		}
	}
	whole := p.transaction(&q.TransactionalID)
	codes, refusals := make([]int16, len(q.Topics)), whole != 0
	for i := range q.Topics {
		codes[i] = first(whole, p.topic(policy.ActionWrite, q.Topics[i].Topic, topicID{}))
		refusals = refusals || codes[i] != 0
	}
	if !refusals {
		return verdict{}
	}
	return answered(q, func(r *kmsg.AddPartitionsToTxnResponse) {
		for i := range q.Topics {
			made := kmsg.NewAddPartitionsToTxnResponseTopic()
			made.Topic = q.Topics[i].Topic
			for _, partition := range q.Topics[i].Partitions {
				answer := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
				answer.Partition, answer.ErrorCode = partition, first(codes[i], operationUnattempted)
				made.Partitions = append(made.Partitions, answer)
			}
			r.Topics = append(r.Topics, made)
		}
	})
}
