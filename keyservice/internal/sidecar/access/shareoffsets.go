// Requests about the offsets of share groups.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

var shareGroupsDescribed = entry[kmsg.DescribeShareGroupOffsetsRequestGroup, kmsg.DescribeShareGroupOffsetsResponseGroup, string]{
	asked:    func(g *kmsg.DescribeShareGroupOffsetsRequestGroup) string { return g.GroupID },
	answered: func(g *kmsg.DescribeShareGroupOffsetsResponseGroup) string { return g.GroupID },
	refuse: func(g *kmsg.DescribeShareGroupOffsetsRequestGroup, code int16) kmsg.DescribeShareGroupOffsetsResponseGroup {
		made := kmsg.NewDescribeShareGroupOffsetsResponseGroup()
		made.GroupID, made.ErrorCode = g.GroupID, code
		return made
	},
}

var shareOffsetsDescribed = entry[kmsg.DescribeShareGroupOffsetsRequestGroupTopic, kmsg.DescribeShareGroupOffsetsResponseGroupTopic, string]{
	asked:    func(t *kmsg.DescribeShareGroupOffsetsRequestGroupTopic) string { return t.Topic },
	answered: func(t *kmsg.DescribeShareGroupOffsetsResponseGroupTopic) string { return t.Topic },
	refuse: func(t *kmsg.DescribeShareGroupOffsetsRequestGroupTopic, code int16) kmsg.DescribeShareGroupOffsetsResponseGroupTopic {
		made := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *int32) kmsg.DescribeShareGroupOffsetsResponseGroupTopicPartition {
			answer := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopicPartition()
			answer.Partition, answer.ErrorCode, answer.StartOffset = *p, code, -1
			return answer
		})
		return made
	},
}

func describeShareGroupOffsets(p *pass, q *kmsg.DescribeShareGroupOffsetsRequest) verdict {
	rest := *q
	merges := map[string]func([]kmsg.DescribeShareGroupOffsetsResponseGroupTopic) []kmsg.DescribeShareGroupOffsetsResponseGroupTopic{}
	left, refusals := sift(q.Groups, shareGroupsDescribed, func(g *kmsg.DescribeShareGroupOffsetsRequestGroup) int16 { return p.group(g.GroupID) })
	rest.Groups = append([]kmsg.DescribeShareGroupOffsetsRequestGroup{}, left...)
	for i := range rest.Groups {
		g := &rest.Groups[i]
		topics, refused := sift(g.Topics, shareOffsetsDescribed, func(t *kmsg.DescribeShareGroupOffsetsRequestGroupTopic) int16 {
			return p.topic(policy.ActionDescribe, t.Topic, topicID{})
		})
		if refused.any() { // an empty list stays one: no list would ask for all topics
			g.Topics, merges[g.GroupID] = topics, refused.into
		}
	}
	v := part(&rest, len(rest.Groups), refusals.any() || len(merges) > 0, func(r *kmsg.DescribeShareGroupOffsetsResponse) {
		for i := range r.Groups {
			if merge := merges[r.Groups[i].GroupID]; merge != nil && r.Groups[i].ErrorCode == 0 {
				r.Groups[i].Topics = merge(r.Groups[i].Topics)
			}
		}
		r.Groups = refusals.into(r.Groups)
	})
	if v.answer == nil {
		v.deliver = deliver(allShareOffsets)
	}
	return v
}

// allShareOffsets hides topics that nobody named.
func allShareOffsets(p *pass, r *kmsg.DescribeShareGroupOffsetsResponse) (cut func()) {
	for i := range r.Groups {
		cut = both(cut, keep(&r.Groups[i].Topics, func(t *kmsg.DescribeShareGroupOffsetsResponseGroupTopic) bool {
			return p.topic(policy.ActionDescribe, t.Topic, t.TopicID) == 0
		}))
	}
	return cut
}

var shareOffsetsAltered = entry[kmsg.AlterShareGroupOffsetsRequestTopic, kmsg.AlterShareGroupOffsetsResponseTopic, string]{
	asked:    func(t *kmsg.AlterShareGroupOffsetsRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.AlterShareGroupOffsetsResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.AlterShareGroupOffsetsRequestTopic, code int16) kmsg.AlterShareGroupOffsetsResponseTopic {
		made := kmsg.NewAlterShareGroupOffsetsResponseTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *kmsg.AlterShareGroupOffsetsRequestTopicPartition) kmsg.AlterShareGroupOffsetsResponseTopicPartition {
			answer := kmsg.NewAlterShareGroupOffsetsResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, code
			return answer
		})
		return made
	},
}

func alterShareGroupOffsets(p *pass, q *kmsg.AlterShareGroupOffsetsRequest) verdict {
	if code := p.group(q.GroupID); code != 0 {
		return answered(q, func(r *kmsg.AlterShareGroupOffsetsResponse) { r.ErrorCode = code })
	}
	rest := *q
	left, refusals := sift(q.Topics, shareOffsetsAltered, func(t *kmsg.AlterShareGroupOffsetsRequestTopic) int16 {
		return p.topic(policy.ActionRead, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.AlterShareGroupOffsetsResponse) { r.Topics = refusals.into(r.Topics) })
}

var shareOffsetsDeleted = entry[kmsg.DeleteShareGroupOffsetsRequestTopic, kmsg.DeleteShareGroupOffsetsResponseTopic, string]{
	asked:    func(t *kmsg.DeleteShareGroupOffsetsRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.DeleteShareGroupOffsetsResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.DeleteShareGroupOffsetsRequestTopic, code int16) kmsg.DeleteShareGroupOffsetsResponseTopic {
		made := kmsg.NewDeleteShareGroupOffsetsResponseTopic()
		made.Topic, made.ErrorCode = t.Topic, code
		return made
	},
}

func deleteShareGroupOffsets(p *pass, q *kmsg.DeleteShareGroupOffsetsRequest) verdict {
	if code := p.group(q.GroupID); code != 0 {
		return answered(q, func(r *kmsg.DeleteShareGroupOffsetsResponse) { r.ErrorCode = code })
	}
	rest := *q
	left, refusals := sift(q.Topics, shareOffsetsDeleted, func(t *kmsg.DeleteShareGroupOffsetsRequestTopic) int16 {
		return p.topic(policy.ActionRead, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.DeleteShareGroupOffsetsResponse) { r.Topics = refusals.into(r.Topics) })
}
