// Requests that carry records: Produce, Fetch, and those of share groups.

package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

var produced = entry[kmsg.ProduceRequestTopic, kmsg.ProduceResponseTopic, topicKey]{
	asked:    func(t *kmsg.ProduceRequestTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	answered: func(t *kmsg.ProduceResponseTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	refuse: func(t *kmsg.ProduceRequestTopic, code int16) kmsg.ProduceResponseTopic {
		made := kmsg.NewProduceResponseTopic()
		made.Topic, made.TopicID = t.Topic, t.TopicID
		made.Partitions = each(t.Partitions, func(p *kmsg.ProduceRequestTopicPartition) kmsg.ProduceResponseTopicPartition {
			answer := kmsg.NewProduceResponseTopicPartition()
			answer.Partition, answer.ErrorCode, answer.BaseOffset, answer.LogStartOffset = p.Partition, code, -1, -1
			return answer
		})
		return made
	},
}

func produce(p *pass, q *kmsg.ProduceRequest) verdict {
	whole := p.transaction(q.TransactionID)
	rest := *q
	left, refusals := sift(q.Topics, produced, func(t *kmsg.ProduceRequestTopic) int16 {
		return first(whole, p.topic(policy.ActionWrite, t.Topic, t.TopicID))
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.ProduceResponse) { r.Topics = refusals.into(r.Topics) })
}

var fetched = entry[kmsg.FetchRequestTopic, kmsg.FetchResponseTopic, topicKey]{
	asked:    func(t *kmsg.FetchRequestTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	answered: func(t *kmsg.FetchResponseTopic) topicKey { return topicKey{t.Topic, t.TopicID} },
	refuse: func(t *kmsg.FetchRequestTopic, code int16) kmsg.FetchResponseTopic {
		made := kmsg.NewFetchResponseTopic()
		made.Topic, made.TopicID = t.Topic, t.TopicID
		made.Partitions = each(t.Partitions, func(p *kmsg.FetchRequestTopicPartition) kmsg.FetchResponseTopicPartition {
			return fetchRefused(p.Partition, code)
		})
		return made
	},
}

func fetchRefused(partition int32, code int16) kmsg.FetchResponseTopicPartition {
	made := kmsg.NewFetchResponseTopicPartition()
	made.Partition, made.ErrorCode, made.HighWatermark, made.RecordBatches = partition, code, -1, []byte{}
	return made
}

// fetch lets no fetch session come about (KIP-227): each request then names all its partitions, and each can be decided about by
// itself. Brokers that have no room for a session do the same, so every client can live with it.
func fetch(p *pass, q *kmsg.FetchRequest) verdict {
	if q.SessionID != 0 || q.SessionEpoch > 0 {
		return answered(q, func(r *kmsg.FetchResponse) { r.ErrorCode = sessionUnknown })
	}
	whole := first(p.consumer(q.ReplicaID), p.consumer(replicaOf(q)))
	rest := *q
	left, refusals := sift(q.Topics, fetched, func(t *kmsg.FetchRequestTopic) int16 {
		return first(whole, p.topic(policy.ActionRead, t.Topic, t.TopicID))
	})
	rest.Topics = left
	v := part(&rest, len(left), refusals.any(), func(r *kmsg.FetchResponse) { r.Topics = refusals.into(r.Topics) })
	if v.answer != nil {
		return v
	}
	if q.SessionEpoch == 0 || len(q.ForgottenTopics) > 0 {
		const sessionless = -1
		rest.SessionEpoch, rest.ForgottenTopics = sessionless, nil
		v.request = &rest
	}
	v.deliver = deliver(fetchedNow)
	return v
}

// replicaOf gives the place where version 15 and newer say which broker asks.
func replicaOf(q *kmsg.FetchRequest) int32 {
	const moved = 15
	if q.Version < moved {
		return -1
	}
	return q.ReplicaState.ID
}

// fetchedNow takes out what may not be read any more: the answer may have waited longer than the lease.
func fetchedNow(p *pass, r *kmsg.FetchResponse) (cut func()) {
	for i := range r.Topics {
		t := &r.Topics[i]
		if code := p.topic(policy.ActionRead, t.Topic, t.TopicID); code != 0 {
			cut = both(cut, func() {
				t.Partitions = each(t.Partitions, func(p *kmsg.FetchResponseTopicPartition) kmsg.FetchResponseTopicPartition {
					return fetchRefused(p.Partition, first(p.ErrorCode, code))
				})
			})
		}
	}
	return cut
}

var shared = entry[kmsg.ShareFetchRequestTopic, kmsg.ShareFetchResponseTopic, topicID]{
	asked:    func(t *kmsg.ShareFetchRequestTopic) topicID { return t.TopicID },
	answered: func(t *kmsg.ShareFetchResponseTopic) topicID { return t.TopicID },
	refuse: func(t *kmsg.ShareFetchRequestTopic, code int16) kmsg.ShareFetchResponseTopic {
		made := kmsg.NewShareFetchResponseTopic()
		made.TopicID = t.TopicID
		made.Partitions = each(t.Partitions, func(p *kmsg.ShareFetchRequestTopicPartition) kmsg.ShareFetchResponseTopicPartition {
			return shareRefused(p.Partition, code)
		})
		return made
	},
}

func shareRefused(partition int32, code int16) kmsg.ShareFetchResponseTopicPartition {
	made := kmsg.NewShareFetchResponseTopicPartition()
	made.Partition, made.ErrorCode = partition, code
	return made
}

func shareFetch(p *pass, q *kmsg.ShareFetchRequest) verdict {
	if code := p.group(textOf(q.GroupID)); code != 0 {
		return answered(q, func(r *kmsg.ShareFetchResponse) { r.ErrorCode = code })
	}
	rest := *q
	left, refusals := sift(q.Topics, shared, func(t *kmsg.ShareFetchRequestTopic) int16 {
		return p.topic(policy.ActionRead, "", t.TopicID)
	})
	rest.Topics = left
	const some = 1 // a request without topics goes on with the session of its group: it is sent
	v := part(&rest, some, refusals.any(), func(r *kmsg.ShareFetchResponse) { r.Topics = refusals.into(r.Topics) })
	v.deliver = deliver(sharedNow)
	return v
}

func sharedNow(p *pass, r *kmsg.ShareFetchResponse) (cut func()) {
	for i := range r.Topics {
		t := &r.Topics[i]
		if code := p.topic(policy.ActionRead, "", t.TopicID); code != 0 {
			cut = both(cut, func() {
				t.Partitions = each(t.Partitions, func(p *kmsg.ShareFetchResponseTopicPartition) kmsg.ShareFetchResponseTopicPartition {
					return shareRefused(p.Partition, first(p.ErrorCode, code))
				})
			})
		}
	}
	return cut
}

var acknowledged = entry[kmsg.ShareAcknowledgeRequestTopic, kmsg.ShareAcknowledgeResponseTopic, topicID]{
	asked:    func(t *kmsg.ShareAcknowledgeRequestTopic) topicID { return t.TopicID },
	answered: func(t *kmsg.ShareAcknowledgeResponseTopic) topicID { return t.TopicID },
	refuse: func(t *kmsg.ShareAcknowledgeRequestTopic, code int16) kmsg.ShareAcknowledgeResponseTopic {
		made := kmsg.NewShareAcknowledgeResponseTopic()
		made.TopicID = t.TopicID
		made.Partitions = each(t.Partitions, func(p *kmsg.ShareAcknowledgeRequestTopicPartition) kmsg.ShareAcknowledgeResponseTopicPartition {
			answer := kmsg.NewShareAcknowledgeResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, code
			return answer
		})
		return made
	},
}

func shareAcknowledge(p *pass, q *kmsg.ShareAcknowledgeRequest) verdict {
	if code := p.group(textOf(q.GroupID)); code != 0 {
		return answered(q, func(r *kmsg.ShareAcknowledgeResponse) { r.ErrorCode = code })
	}
	rest := *q
	left, refusals := sift(q.Topics, acknowledged, func(t *kmsg.ShareAcknowledgeRequestTopic) int16 {
		return p.topic(policy.ActionRead, "", t.TopicID)
	})
	rest.Topics = left
	return part(&rest, len(left), refusals.any(), func(r *kmsg.ShareAcknowledgeResponse) { r.Topics = refusals.into(r.Topics) })
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
