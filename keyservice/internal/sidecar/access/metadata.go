// Seeing topics: Metadata and DescribeTopicPartitions. Topics that somebody names are marked as refused; of all others only those that
// may be seen are shown.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

func metadata(p *pass, q *kmsg.MetadataRequest) verdict {
	if everyTopic(q) {
		return verdict{deliver: deliver(seenTopics)}
	}
	rest := *q
	left, refusals := sift(q.Topics, topicSeen(q.Topics), func(t *kmsg.MetadataRequestTopic) int16 {
		code := p.topic(policy.ActionDescribe, textOf(t.Topic), t.TopicID)
		if t.Topic == nil && code == topicRefused {
			code = topicIDUnknown // who may not see a topic does not learn its name
		}
		return code
	})
	rest.Topics = left
	none := len(left) == 0
	if none { // brokers and controller are wanted all the same: no topic is asked for, or in version 0 every one
		rest.Topics = []kmsg.MetadataRequestTopic{}
	}
	const ask = 1
	v := part(&rest, ask, refusals.any(), func(r *kmsg.MetadataResponse) {
		if none {
			r.Topics = nil
		}
		r.Topics = refusals.into(r.Topics)
	})
	if q.AllowAutoTopicCreation && !mayCreate(p, left) {
		rest.AllowAutoTopicCreation = false
		v.request = &rest
	}
	return v
}

func everyTopic(q *kmsg.MetadataRequest) bool {
	return q.Topics == nil || q.Version == 0 && len(q.Topics) == 0
}

// mayCreate tells whether all topics may be created, should they not be there: which are is not known here.
func mayCreate(p *pass, topics []kmsg.MetadataRequestTopic) bool {
	all := true
	for i := range topics {
		all = p.may(policy.ActionManage, textOf(topics[i].Topic)) && all
	}
	return all
}

// seenTopics hides the topics that may not be seen.
func seenTopics(p *pass, r *kmsg.MetadataResponse) func() {
	return keep(&r.Topics, func(t *kmsg.MetadataResponseTopic) bool { return p.shows(t.Topic) })
}

// shows tells whether a topic of a list that nobody named may be shown.
func (p *pass) shows(name *string) bool { return p.may(policy.ActionDescribe, textOf(name)) }

// may is can for what nobody has asked for: what is not allowed is left out, and is no denial.
func (p *pass) may(action policy.Action, name string) bool {
	check := Check{action, name}
	if !usable(check) {
		return false
	}
	known := p.look(check)
	if known == unknown {
		p.missing = append(p.missing, check)
	}
	return known == allowed
}

// topicSeen matches answers to what was asked for by name or by id: the answer has both.
func topicSeen(asked []kmsg.MetadataRequestTopic) entry[kmsg.MetadataRequestTopic, kmsg.MetadataResponseTopic, topicKey] {
	key := byNameOrID(each(asked, func(t *kmsg.MetadataRequestTopic) *string { return t.Topic }))
	return entry[kmsg.MetadataRequestTopic, kmsg.MetadataResponseTopic, topicKey]{
		asked:    func(t *kmsg.MetadataRequestTopic) topicKey { return key(t.Topic, t.TopicID) },
		answered: func(t *kmsg.MetadataResponseTopic) topicKey { return key(t.Topic, t.TopicID) },
		refuse: func(t *kmsg.MetadataRequestTopic, code int16) kmsg.MetadataResponseTopic {
			made := kmsg.NewMetadataResponseTopic()
			made.Topic, made.TopicID, made.ErrorCode = t.Topic, t.TopicID, code
			return made
		},
	}
}

func describeTopicPartitions(p *pass, q *kmsg.DescribeTopicPartitionsRequest) verdict {
	if len(q.Topics) == 0 {
		return verdict{deliver: deliver(seenPartitions)}
	}
	rest := *q
	left, refusals := sift(q.Topics, partitionsSeen, func(t *kmsg.DescribeTopicPartitionsRequestTopic) int16 {
		return p.topic(policy.ActionDescribe, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.DescribeTopicPartitionsResponse) { r.Topics = refusals.into(r.Topics) })
}

func seenPartitions(p *pass, r *kmsg.DescribeTopicPartitionsResponse) func() {
	return keep(&r.Topics, func(t *kmsg.DescribeTopicPartitionsResponseTopic) bool { return p.shows(t.Topic) })
}

var partitionsSeen = entry[kmsg.DescribeTopicPartitionsRequestTopic, kmsg.DescribeTopicPartitionsResponseTopic, string]{
	asked:    func(t *kmsg.DescribeTopicPartitionsRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.DescribeTopicPartitionsResponseTopic) string { return textOf(t.Topic) },
	refuse: func(t *kmsg.DescribeTopicPartitionsRequestTopic, code int16) kmsg.DescribeTopicPartitionsResponseTopic {
		made := kmsg.NewDescribeTopicPartitionsResponseTopic()
		made.Topic, made.ErrorCode = &t.Topic, code
		return made
	},
}
