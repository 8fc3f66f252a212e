// Requests about offsets.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

var offsetsListed = entry[kmsg.ListOffsetsRequestTopic, kmsg.ListOffsetsResponseTopic, string]{
	asked:    func(t *kmsg.ListOffsetsRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.ListOffsetsResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.ListOffsetsRequestTopic, code int16) kmsg.ListOffsetsResponseTopic {
		made := kmsg.NewListOffsetsResponseTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
			answer := kmsg.NewListOffsetsResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, code
			return answer
		})
		return made
	},
}

func listOffsets(p *pass, q *kmsg.ListOffsetsRequest) verdict {
	whole := p.consumer(q.ReplicaID)
	rest := *q
	left, refusals := sift(q.Topics, offsetsListed, func(t *kmsg.ListOffsetsRequestTopic) int16 {
		return first(whole, p.topic(policy.ActionDescribe, t.Topic, topicID{}))
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.ListOffsetsResponse) { r.Topics = refusals.into(r.Topics) })
}

var epochs = entry[kmsg.OffsetForLeaderEpochRequestTopic, kmsg.OffsetForLeaderEpochResponseTopic, string]{
	asked:    func(t *kmsg.OffsetForLeaderEpochRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.OffsetForLeaderEpochResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.OffsetForLeaderEpochRequestTopic, code int16) kmsg.OffsetForLeaderEpochResponseTopic {
		made := kmsg.NewOffsetForLeaderEpochResponseTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *kmsg.OffsetForLeaderEpochRequestTopicPartition) kmsg.OffsetForLeaderEpochResponseTopicPartition {
			answer := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			answer.Partition, answer.ErrorCode, answer.EndOffset = p.Partition, code, -1
			return answer
		})
		return made
	},
}

func offsetForLeaderEpoch(p *pass, q *kmsg.OffsetForLeaderEpochRequest) verdict {
	whole := p.consumer(q.ReplicaID)
	rest := *q
	left, refusals := sift(q.Topics, epochs, func(t *kmsg.OffsetForLeaderEpochRequestTopic) int16 {
		return first(whole, p.topic(policy.ActionDescribe, t.Topic, topicID{}))
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.OffsetForLeaderEpochResponse) { r.Topics = refusals.into(r.Topics) })
}

var committed = entry[kmsg.OffsetCommitRequestTopic, kmsg.OffsetCommitResponseTopic, topicKey]{
	asked:    func(t *kmsg.OffsetCommitRequestTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	answered: func(t *kmsg.OffsetCommitResponseTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	refuse: func(t *kmsg.OffsetCommitRequestTopic, code int16) kmsg.OffsetCommitResponseTopic {
		made := kmsg.NewOffsetCommitResponseTopic()
		made.Topic, made.TopicID = t.Topic, t.TopicID
		made.Partitions = each(t.Partitions, func(p *kmsg.OffsetCommitRequestTopicPartition) kmsg.OffsetCommitResponseTopicPartition {
			answer := kmsg.NewOffsetCommitResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, code
			return answer
		})
		return made
	},
}

func offsetCommit(p *pass, q *kmsg.OffsetCommitRequest) verdict {
	whole := p.group(q.Group)
	rest := *q
	left, refusals := sift(q.Topics, committed, func(t *kmsg.OffsetCommitRequestTopic) int16 {
		return first(whole, p.topic(policy.ActionRead, t.Topic, t.TopicID))
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.OffsetCommitResponse) { r.Topics = refusals.into(r.Topics) })
}

var committedInTransaction = entry[kmsg.TxnOffsetCommitRequestTopic, kmsg.TxnOffsetCommitResponseTopic, topicKey]{
	asked:    func(t *kmsg.TxnOffsetCommitRequestTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	answered: func(t *kmsg.TxnOffsetCommitResponseTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	refuse: func(t *kmsg.TxnOffsetCommitRequestTopic, code int16) kmsg.TxnOffsetCommitResponseTopic {
		made := kmsg.NewTxnOffsetCommitResponseTopic()
		made.Topic, made.TopicID = t.Topic, t.TopicID
		made.Partitions = each(t.Partitions, func(p *kmsg.TxnOffsetCommitRequestTopicPartition) kmsg.TxnOffsetCommitResponseTopicPartition {
			answer := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, code
			return answer
		})
		return made
	},
}

func txnOffsetCommit(p *pass, q *kmsg.TxnOffsetCommitRequest) verdict {
	whole := first(p.transaction(&q.TransactionalID), p.group(q.Group))
	rest := *q
	left, refusals := sift(q.Topics, committedInTransaction, func(t *kmsg.TxnOffsetCommitRequestTopic) int16 {
		return first(whole, p.topic(policy.ActionRead, t.Topic, t.TopicID))
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.TxnOffsetCommitResponse) { r.Topics = refusals.into(r.Topics) })
}

var offsetsDeleted = entry[kmsg.OffsetDeleteRequestTopic, kmsg.OffsetDeleteResponseTopic, string]{
	asked:    func(t *kmsg.OffsetDeleteRequestTopic) string { return t.Topic },
	answered: func(t *kmsg.OffsetDeleteResponseTopic) string { return t.Topic },
	refuse: func(t *kmsg.OffsetDeleteRequestTopic, code int16) kmsg.OffsetDeleteResponseTopic {
		made := kmsg.NewOffsetDeleteResponseTopic()
		made.Topic = t.Topic
		made.Partitions = each(t.Partitions, func(p *kmsg.OffsetDeleteRequestTopicPartition) kmsg.OffsetDeleteResponseTopicPartition {
			answer := kmsg.NewOffsetDeleteResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, code
			return answer
		})
		return made
	},
}

func offsetDelete(p *pass, q *kmsg.OffsetDeleteRequest) verdict {
	if code := p.group(q.Group); code != 0 {
		return answered(q, func(r *kmsg.OffsetDeleteResponse) { r.ErrorCode = code })
	}
	rest := *q
	left, refusals := sift(q.Topics, offsetsDeleted, func(t *kmsg.OffsetDeleteRequestTopic) int16 {
		return p.topic(policy.ActionRead, t.Topic, topicID{})
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.OffsetDeleteResponse) { r.Topics = refusals.into(r.Topics) })
}
