// Requests that change topics and the cluster.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

var created = entry[kmsg.CreateTopicsRequestTopic, kmsg.CreateTopicsResponseTopic, string]{
	asked:    func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.CreateTopicsResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.CreateTopicsRequestTopic, code int16) kmsg.CreateTopicsResponseTopic {
		made := kmsg.NewCreateTopicsResponseTopic()
		made.Topic, made.ErrorCode, made.ErrorMessage = t.Topic, code, message()
		return made
	},
}

func createTopics(p *pass, q *kmsg.CreateTopicsRequest) verdict {
	rest := *q
	left, refusals := sift(q.Topics, created, func(t *kmsg.CreateTopicsRequestTopic) int16 {
		return p.topic(policy.ActionManage, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.CreateTopicsResponse) { r.Topics = refusals.into(r.Topics) })
}

var partitioned = entry[kmsg.CreatePartitionsRequestTopic, kmsg.CreatePartitionsResponseTopic, string]{
	asked:    func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.CreatePartitionsResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.CreatePartitionsRequestTopic, code int16) kmsg.CreatePartitionsResponseTopic {
		made := kmsg.NewCreatePartitionsResponseTopic()
		made.Topic, made.ErrorCode, made.ErrorMessage = t.Topic, code, message()
		return made
	},
}

func createPartitions(p *pass, q *kmsg.CreatePartitionsRequest) verdict {
	rest := *q
	left, refusals := sift(q.Topics, partitioned, func(t *kmsg.CreatePartitionsRequestTopic) int16 {
		return p.topic(policy.ActionManage, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.CreatePartitionsResponse) { r.Topics = refusals.into(r.Topics) })
}

// namedDeletions is the version from which DeleteTopics has a list of names or ids.
const namedDeletions = 6

func deleteTopics(p *pass, q *kmsg.DeleteTopicsRequest) verdict {
	rest := *q
	if q.Version < namedDeletions {
		left, refusals := sift(q.TopicNames, deletedByName, func(name *string) int16 { return p.topic(policy.ActionManage, *name, topicID{}) })
		rest.TopicNames = left
		return part(&rest, len(left), refusals.any(), func(r *kmsg.DeleteTopicsResponse) { r.Topics = refusals.into(r.Topics) })
	}
	left, refusals := sift(q.Topics, topicDeleted(q.Topics), func(t *kmsg.DeleteTopicsRequestTopic) int16 {
		code := p.topic(policy.ActionManage, textOf(t.Topic), t.TopicID)
		if t.Topic == nil && code == topicRefused {
			code = topicIDUnknown
		}
		return code
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.DeleteTopicsResponse) { r.Topics = refusals.into(r.Topics) })
}

var deletedByName = entry[string, kmsg.DeleteTopicsResponseTopic, string]{
	asked:    self[string],
	answered: func(t *kmsg.DeleteTopicsResponseTopic) string { return textOf(t.Topic) },
	refuse: func(name *string, code int16) kmsg.DeleteTopicsResponseTopic {
		made := kmsg.NewDeleteTopicsResponseTopic()
		made.Topic, made.ErrorCode, made.ErrorMessage = name, code, message()
		return made
	},
}

func topicDeleted(asked []kmsg.DeleteTopicsRequestTopic) entry[kmsg.DeleteTopicsRequestTopic, kmsg.DeleteTopicsResponseTopic, topicKey] {
	key := byNameOrID(each(asked, func(t *kmsg.DeleteTopicsRequestTopic) *string { return t.Topic }))
	return entry[kmsg.DeleteTopicsRequestTopic, kmsg.DeleteTopicsResponseTopic, topicKey]{
		asked:    func(t *kmsg.DeleteTopicsRequestTopic) topicKey { return key(t.Topic, t.TopicID) },
		answered: func(t *kmsg.DeleteTopicsResponseTopic) topicKey { return key(t.Topic, t.TopicID) },
		refuse: func(t *kmsg.DeleteTopicsRequestTopic, code int16) kmsg.DeleteTopicsResponseTopic {
			made := kmsg.NewDeleteTopicsResponseTopic()
			made.Topic, made.TopicID, made.ErrorCode, made.ErrorMessage = t.Topic, t.TopicID, code, message()
			return made
		},
	}
}

var recordsDeleted = entry[kmsg.DeleteRecordsRequestTopic, kmsg.DeleteRecordsResponseTopic, string]{
	asked:    func(t *kmsg.DeleteRecordsRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.DeleteRecordsResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.DeleteRecordsRequestTopic, code int16) kmsg.DeleteRecordsResponseTopic {
		made := kmsg.NewDeleteRecordsResponseTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *kmsg.DeleteRecordsRequestTopicPartition) kmsg.DeleteRecordsResponseTopicPartition {
			answer := kmsg.NewDeleteRecordsResponseTopicPartition()
			answer.Partition, answer.ErrorCode, answer.LowWatermark = p.Partition, code, -1
			return answer
		})
		return made
	},
}

func deleteRecords(p *pass, q *kmsg.DeleteRecordsRequest) verdict {
	rest := *q
	left, refusals := sift(q.Topics, recordsDeleted, func(t *kmsg.DeleteRecordsRequestTopic) int16 {
		return p.topic(policy.ActionManage, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.DeleteRecordsResponse) { r.Topics = refusals.into(r.Topics) })
}

var producersDescribed = entry[kmsg.DescribeProducersRequestTopic, kmsg.DescribeProducersResponseTopic, string]{
	asked:    func(t *kmsg.DescribeProducersRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.DescribeProducersResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.DescribeProducersRequestTopic, code int16) kmsg.DescribeProducersResponseTopic {
		made := kmsg.NewDescribeProducersResponseTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *int32) kmsg.DescribeProducersResponseTopicPartition {
			answer := kmsg.NewDescribeProducersResponseTopicPartition()
			answer.Partition, answer.ErrorCode = *p, code
			return answer
		})
		return made
	},
}

func describeProducers(p *pass, q *kmsg.DescribeProducersRequest) verdict {
	rest := *q
	left, refusals := sift(q.Topics, producersDescribed, func(t *kmsg.DescribeProducersRequestTopic) int16 {
		return p.topic(policy.ActionRead, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.DescribeProducersResponse) { r.Topics = refusals.into(r.Topics) })
}

// message says to people what to do; a new one each time, as answers hold pointers.
func message() *string {
	text := "the policy of the key service does not allow this: see cipherlane policy explain"
	return &text
}

// byNameOrID gives the key of what was asked for by name, or by id: answers have both.
func byNameOrID(asked []*string) func(name *string, id topicID) topicKey {
	named := make(map[string]bool, len(asked))
	for _, name := range asked {
		if name != nil {
			named[*name] = true
		}
	}
	return func(name *string, id topicID) topicKey {
		if name != nil && named[*name] {
			return topicKey{name: *name}
		}
		return topicKey{id: id}
	}
}
