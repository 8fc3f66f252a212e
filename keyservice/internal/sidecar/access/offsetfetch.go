// OffsetFetch: of one group up to version 7, of several from version 8 on; of named topics, or of all.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// manyGroups is the version from which OffsetFetch takes several groups.
const manyGroups = 8

func offsetFetch(p *pass, q *kmsg.OffsetFetchRequest) verdict {
	if q.Version < manyGroups {
		return offsetFetchOfOne(p, q)
	}
	rest := *q
	merges := map[string]func([]kmsg.OffsetFetchResponseGroupTopic) []kmsg.OffsetFetchResponseGroupTopic{}
	left, refusals := sift(q.Groups, groupsFetched, func(g *kmsg.OffsetFetchRequestGroup) int16 { return p.group(g.Group) })
	rest.Groups = append([]kmsg.OffsetFetchRequestGroup{}, left...)
	for i := range rest.Groups {
		g := &rest.Groups[i]
		topics, refused := sift(g.Topics, groupTopicsFetched, func(t *kmsg.OffsetFetchRequestGroupTopic) int16 {
			return p.topic(policy.ActionDescribe, t.Topic, t.TopicID)
		})
		if refused.any() { // an empty list stays one: no list would ask for all topics
			g.Topics, merges[g.Group] = topics, refused.into
		}
	}
	v := part(&rest, len(rest.Groups), refusals.any() || len(merges) > 0, func(r *kmsg.OffsetFetchResponse) {
		for i := range r.Groups {
			if merge := merges[r.Groups[i].Group]; merge != nil && r.Groups[i].ErrorCode == 0 {
				r.Groups[i].Topics = merge(r.Groups[i].Topics)
			}
		}
		r.Groups = refusals.into(r.Groups)
	})
	if v.answer == nil {
		v.deliver = deliver(allOffsets)
	}
	return v
}

// allOffsets hides topics that nobody named.
func allOffsets(p *pass, r *kmsg.OffsetFetchResponse) (cut func()) {
	for i := range r.Groups {
		cut = both(cut, keep(&r.Groups[i].Topics, func(t *kmsg.OffsetFetchResponseGroupTopic) bool {
			return p.topic(policy.ActionDescribe, t.Topic, t.TopicID) == 0
		}))
	}
	return both(cut, keep(&r.Topics, func(t *kmsg.OffsetFetchResponseTopic) bool {
		return p.topic(policy.ActionDescribe, t.Topic, topicID{}) == 0
	}))
}

var groupsFetched = entry[kmsg.OffsetFetchRequestGroup, kmsg.OffsetFetchResponseGroup, string]{
	asked:    func(g *kmsg.OffsetFetchRequestGroup) string { return g.Group },
	answered: func(g *kmsg.OffsetFetchResponseGroup) string { return g.Group },
	refuse: func(g *kmsg.OffsetFetchRequestGroup, code int16) kmsg.OffsetFetchResponseGroup {
		made := kmsg.NewOffsetFetchResponseGroup()
		made.Group, made.ErrorCode = g.Group, code
		return made
	},
}

var groupTopicsFetched = entry[kmsg.OffsetFetchRequestGroupTopic, kmsg.OffsetFetchResponseGroupTopic, topicKey]{
	asked:    func(t *kmsg.OffsetFetchRequestGroupTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	answered: func(t *kmsg.OffsetFetchResponseGroupTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	refuse: func(t *kmsg.OffsetFetchRequestGroupTopic, code int16) kmsg.OffsetFetchResponseGroupTopic {
		made := kmsg.NewOffsetFetchResponseGroupTopic()
		made.Topic, made.TopicID = t.Topic, t.TopicID
		made.Partitions = each(t.Partitions, func(p *int32) kmsg.OffsetFetchResponseGroupTopicPartition {
			answer := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			answer.Partition, answer.ErrorCode, answer.Offset = *p, code, -1
			return answer
		})
		return made
	},
}

var topicsFetched = entry[kmsg.OffsetFetchRequestTopic, kmsg.OffsetFetchResponseTopic, string]{
	asked:    func(t *kmsg.OffsetFetchRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.OffsetFetchResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.OffsetFetchRequestTopic, code int16) kmsg.OffsetFetchResponseTopic {
		made := kmsg.NewOffsetFetchResponseTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *int32) kmsg.OffsetFetchResponseTopicPartition {
			answer := kmsg.NewOffsetFetchResponseTopicPartition()
			answer.Partition, answer.ErrorCode, answer.Offset = *p, code, -1
			return answer
		})
		return made
	},
}

func offsetFetchOfOne(p *pass, q *kmsg.OffsetFetchRequest) verdict {
	rest := *q
	if code := p.group(q.Group); code != 0 {
		_, refusals := sift(q.Topics, topicsFetched, func(*kmsg.OffsetFetchRequestTopic) int16 { return code })
		return answered(q, func(r *kmsg.OffsetFetchResponse) { r.ErrorCode, r.Topics = code, refusals.into(nil) })
	}
	left, refusals := sift(q.Topics, topicsFetched, func(t *kmsg.OffsetFetchRequestTopic) int16 {
		return p.topic(policy.ActionDescribe, t.Topic, topicID{})
	})
	rest.Topics = left
	v := part(&rest, len(left), refusals.any(), func(r *kmsg.OffsetFetchResponse) { r.Topics = refusals.into(r.Topics) })
	if v.answer == nil {
		v.deliver = deliver(allOffsets)
	}
	return v
}
