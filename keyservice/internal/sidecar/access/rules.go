// Package access decides what of the Kafka requests that pass a sidecar is allowed, by the policy of the key service (spec/sidecar.md):
// per topic, group and transactional id, for as long as leases say. What is refused is taken out of requests and answered with Kafka's
// own errors, in its place.
//
// This file is the table of all requests of Kafka. What is not in it is refused.
package access

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rule says what becomes of requests with one key. Its zero value refuses them: they are hidden from clients, and a client that sends
// one all the same is not answered.
type rule struct {
	harmless bool // no right is needed: it says nothing of topics, groups and transactions, and changes nothing
	judge    func(*pass, kmsg.Request) verdict
}

var rules = map[kmsg.Key]rule{
	// Between a client and the node that it speaks with.
	kmsg.ApiVersions:               {harmless: true},
	kmsg.SASLHandshake:             {harmless: true},
	kmsg.SASLAuthenticate:          {harmless: true},
	kmsg.DescribeCluster:           {harmless: true},
	kmsg.GetTelemetrySubscriptions: {harmless: true},
	kmsg.PushTelemetry:             {harmless: true},

	// Topics.
	kmsg.Produce:                 judge(produce),
	kmsg.Fetch:                   judge(fetch),
	kmsg.ListOffsets:             judge(listOffsets),
	kmsg.OffsetForLeaderEpoch:    judge(offsetForLeaderEpoch),
	kmsg.Metadata:                judge(metadata),
	kmsg.DescribeTopicPartitions: judge(describeTopicPartitions),
	kmsg.DescribeProducers:       judge(describeProducers),
	kmsg.CreateTopics:            judge(createTopics),
	kmsg.DeleteTopics:            judge(deleteTopics),
	kmsg.DeleteRecords:           judge(deleteRecords),
	kmsg.CreatePartitions:        judge(createPartitions),
	kmsg.DescribeConfigs:         judge(describeConfigs),
	kmsg.AlterConfigs:            judge(alterConfigs),
	kmsg.IncrementalAlterConfigs: judge(incrementalAlterConfigs),

	// Groups.
	kmsg.FindCoordinator: judge(findCoordinator),
	kmsg.OffsetCommit:    judge(offsetCommit),
	kmsg.OffsetFetch:     judge(offsetFetch),
	kmsg.OffsetDelete:    judge(offsetDelete),
	kmsg.JoinGroup: whole(func(p *pass, q *kmsg.JoinGroupRequest) int16 { return p.group(q.Group) },
		func(_ *kmsg.JoinGroupRequest, r *kmsg.JoinGroupResponse, code int16) { r.ErrorCode = code }),
	kmsg.SyncGroup: whole(func(p *pass, q *kmsg.SyncGroupRequest) int16 { return p.group(q.Group) },
		func(_ *kmsg.SyncGroupRequest, r *kmsg.SyncGroupResponse, code int16) { r.ErrorCode = code }),
	kmsg.Heartbeat: whole(func(p *pass, q *kmsg.HeartbeatRequest) int16 { return p.group(q.Group) },
		func(_ *kmsg.HeartbeatRequest, r *kmsg.HeartbeatResponse, code int16) { r.ErrorCode = code }),
	kmsg.LeaveGroup: whole(func(p *pass, q *kmsg.LeaveGroupRequest) int16 { return p.group(q.Group) },
		func(_ *kmsg.LeaveGroupRequest, r *kmsg.LeaveGroupResponse, code int16) { r.ErrorCode = code }),
	kmsg.ConsumerGroupHeartbeat: whole(func(p *pass, q *kmsg.ConsumerGroupHeartbeatRequest) int16 {
		return p.subscribed(q.Group, q.SubscribedTopicNames)
	},
		func(_ *kmsg.ConsumerGroupHeartbeatRequest, r *kmsg.ConsumerGroupHeartbeatResponse, code int16) {
			r.ErrorCode = code
		}),
	kmsg.ShareGroupHeartbeat: whole(func(p *pass, q *kmsg.ShareGroupHeartbeatRequest) int16 {
		return p.subscribed(q.GroupID, q.SubscribedTopicNames)
	},
		func(_ *kmsg.ShareGroupHeartbeatRequest, r *kmsg.ShareGroupHeartbeatResponse, code int16) {
			r.ErrorCode = code
		}),
	kmsg.StreamsGroupHeartbeat: whole(func(p *pass, q *kmsg.StreamsGroupHeartbeatRequest) int16 {
		return p.subscribed(q.Group, streamsTopics(q))
	},
		func(_ *kmsg.StreamsGroupHeartbeatRequest, r *kmsg.StreamsGroupHeartbeatResponse, code int16) {
			r.ErrorCode = code
		}),
	kmsg.ShareFetch:                judge(shareFetch),
	kmsg.ShareAcknowledge:          judge(shareAcknowledge),
	kmsg.DescribeShareGroupOffsets: judge(describeShareGroupOffsets),
	kmsg.AlterShareGroupOffsets:    judge(alterShareGroupOffsets),
	kmsg.DeleteShareGroupOffsets:   judge(deleteShareGroupOffsets),
	kmsg.ListGroups:                filter(shownGroups),
	kmsg.DescribeGroups: listed(
		func(q *kmsg.DescribeGroupsRequest) []string { return q.Groups },
		func(q *kmsg.DescribeGroupsRequest, left []string) *kmsg.DescribeGroupsRequest {
			rest := *q
			rest.Groups = left
			return &rest
		},
		func(r *kmsg.DescribeGroupsResponse) *[]kmsg.DescribeGroupsResponseGroup { return &r.Groups },
		func(g *kmsg.DescribeGroupsResponseGroup) string { return g.Group },
		func(name string, code int16) kmsg.DescribeGroupsResponseGroup {
			made := kmsg.NewDescribeGroupsResponseGroup()
			made.Group, made.ErrorCode = name, code
			return made
		}, needGroup),
	kmsg.ConsumerGroupDescribe: listed(
		func(q *kmsg.ConsumerGroupDescribeRequest) []string { return q.Groups },
		func(q *kmsg.ConsumerGroupDescribeRequest, left []string) *kmsg.ConsumerGroupDescribeRequest {
			rest := *q
			rest.Groups = left
			return &rest
		},
		func(r *kmsg.ConsumerGroupDescribeResponse) *[]kmsg.ConsumerGroupDescribeResponseGroup {
			return &r.Groups
		},
		func(g *kmsg.ConsumerGroupDescribeResponseGroup) string { return g.Group },
		func(name string, code int16) kmsg.ConsumerGroupDescribeResponseGroup {
			made := kmsg.NewConsumerGroupDescribeResponseGroup()
			made.Group, made.ErrorCode = name, code
			return made
		}, needGroup),
	kmsg.ShareGroupDescribe: listed(
		func(q *kmsg.ShareGroupDescribeRequest) []string { return q.GroupIDs },
		func(q *kmsg.ShareGroupDescribeRequest, left []string) *kmsg.ShareGroupDescribeRequest {
			rest := *q
			rest.GroupIDs = left
			return &rest
		},
		func(r *kmsg.ShareGroupDescribeResponse) *[]kmsg.ShareGroupDescribeResponseGroup { return &r.Groups },
		func(g *kmsg.ShareGroupDescribeResponseGroup) string { return g.GroupID },
		func(name string, code int16) kmsg.ShareGroupDescribeResponseGroup {
			made := kmsg.NewShareGroupDescribeResponseGroup()
			made.GroupID, made.ErrorCode = name, code
			return made
		}, needGroup),
	kmsg.StreamsGroupDescribe: listed(
		func(q *kmsg.StreamsGroupDescribeRequest) []string { return q.Groups },
		func(q *kmsg.StreamsGroupDescribeRequest, left []string) *kmsg.StreamsGroupDescribeRequest {
			rest := *q
			rest.Groups = left
			return &rest
		},
		func(r *kmsg.StreamsGroupDescribeResponse) *[]kmsg.StreamsGroupDescribeResponseGroup { return &r.Groups },
		func(g *kmsg.StreamsGroupDescribeResponseGroup) string { return g.Group },
		func(name string, code int16) kmsg.StreamsGroupDescribeResponseGroup {
			made := kmsg.NewStreamsGroupDescribeResponseGroup()
			made.Group, made.ErrorCode = name, code
			return made
		}, needGroup),
	kmsg.DeleteGroups: listed(
		func(q *kmsg.DeleteGroupsRequest) []string { return q.Groups },
		func(q *kmsg.DeleteGroupsRequest, left []string) *kmsg.DeleteGroupsRequest {
			rest := *q
			rest.Groups = left
			return &rest
		},
		func(r *kmsg.DeleteGroupsResponse) *[]kmsg.DeleteGroupsResponseGroup { return &r.Groups },
		func(g *kmsg.DeleteGroupsResponseGroup) string { return g.Group },
		func(name string, code int16) kmsg.DeleteGroupsResponseGroup {
			made := kmsg.NewDeleteGroupsResponseGroup()
			made.Group, made.ErrorCode = name, code
			return made
		}, needGroup),

	// Transactions. A producer id without a transactional id gives nothing by itself.
	kmsg.InitProducerID: whole(func(p *pass, q *kmsg.InitProducerIDRequest) int16 { return p.transaction(q.TransactionalID) },
		func(_ *kmsg.InitProducerIDRequest, r *kmsg.InitProducerIDResponse, code int16) {
			r.ErrorCode, r.ProducerID, r.ProducerEpoch = code, -1, -1
		}),
	kmsg.AddPartitionsToTxn: judge(addPartitionsToTxn),
	kmsg.AddOffsetsToTxn: whole(func(p *pass, q *kmsg.AddOffsetsToTxnRequest) int16 {
		return first(p.transaction(&q.TransactionalID), p.group(q.Group))
	},
		func(_ *kmsg.AddOffsetsToTxnRequest, r *kmsg.AddOffsetsToTxnResponse, code int16) { r.ErrorCode = code }),
	kmsg.TxnOffsetCommit: judge(txnOffsetCommit),
	kmsg.EndTxn: whole(func(p *pass, q *kmsg.EndTxnRequest) int16 { return p.transaction(&q.TransactionalID) },
		func(_ *kmsg.EndTxnRequest, r *kmsg.EndTxnResponse, code int16) { r.ErrorCode = code }),
	kmsg.ListTransactions: filter(shownTransactions),
	kmsg.DescribeTransactions: listed(
		func(q *kmsg.DescribeTransactionsRequest) []string { return q.TransactionalIDs },
		func(q *kmsg.DescribeTransactionsRequest, left []string) *kmsg.DescribeTransactionsRequest {
			rest := *q
			rest.TransactionalIDs = left
			return &rest
		},
		func(r *kmsg.DescribeTransactionsResponse) *[]kmsg.DescribeTransactionsResponseTransactionState {
			return &r.TransactionStates
		},
		func(t *kmsg.DescribeTransactionsResponseTransactionState) string { return t.TransactionalID },
		func(name string, code int16) kmsg.DescribeTransactionsResponseTransactionState {
			made := kmsg.NewDescribeTransactionsResponseTransactionState()
			made.TransactionalID, made.ErrorCode = name, code
			return made
		}, needTransaction),

	// The cluster itself.
	kmsg.DescribeACLs:    clusterOnly(func(_ *kmsg.DescribeACLsRequest, r *kmsg.DescribeACLsResponse, code int16) { r.ErrorCode = code }),
	kmsg.CreateACLs:      clusterOnly(aclsNotCreated),
	kmsg.DeleteACLs:      clusterOnly(aclsNotDeleted),
	kmsg.DescribeLogDirs: clusterOnly(func(_ *kmsg.DescribeLogDirsRequest, r *kmsg.DescribeLogDirsResponse, code int16) { r.ErrorCode = code }),
	kmsg.ElectLeaders:    clusterOnly(func(_ *kmsg.ElectLeadersRequest, r *kmsg.ElectLeadersResponse, code int16) { r.ErrorCode = code }),
	kmsg.AlterPartitionAssignments: clusterOnly(func(_ *kmsg.AlterPartitionAssignmentsRequest, r *kmsg.AlterPartitionAssignmentsResponse, code int16) {
		r.ErrorCode = code
	}),
	kmsg.ListPartitionReassignments: clusterOnly(func(_ *kmsg.ListPartitionReassignmentsRequest, r *kmsg.ListPartitionReassignmentsResponse, code int16) {
		r.ErrorCode = code
	}),
	kmsg.DescribeClientQuotas: clusterOnly(func(_ *kmsg.DescribeClientQuotasRequest, r *kmsg.DescribeClientQuotasResponse, code int16) {
		r.ErrorCode = code
	}),
	kmsg.AlterClientQuotas: clusterOnly(quotasNotAltered),
	kmsg.DescribeUserSCRAMCredentials: clusterOnly(func(_ *kmsg.DescribeUserSCRAMCredentialsRequest, r *kmsg.DescribeUserSCRAMCredentialsResponse, code int16) {
		r.ErrorCode = code
	}),
	kmsg.AlterUserSCRAMCredentials: clusterOnly(scramNotAltered),
	kmsg.DescribeQuorum:            clusterOnly(func(_ *kmsg.DescribeQuorumRequest, r *kmsg.DescribeQuorumResponse, code int16) { r.ErrorCode = code }),
	kmsg.UpdateFeatures:            clusterOnly(func(_ *kmsg.UpdateFeaturesRequest, r *kmsg.UpdateFeaturesResponse, code int16) { r.ErrorCode = code }),
	kmsg.UnregisterBroker: clusterOnly(func(_ *kmsg.UnregisterBrokerRequest, r *kmsg.UnregisterBrokerResponse, code int16) {
		r.ErrorCode = code
	}),
	kmsg.ListConfigResources: clusterOnly(func(_ *kmsg.ListConfigResourcesRequest, r *kmsg.ListConfigResourcesResponse, code int16) {
		r.ErrorCode = code
	}),
	kmsg.AddRaftVoter:    clusterOnly(func(_ *kmsg.AddRaftVoterRequest, r *kmsg.AddRaftVoterResponse, code int16) { r.ErrorCode = code }),
	kmsg.RemoveRaftVoter: clusterOnly(func(_ *kmsg.RemoveRaftVoterRequest, r *kmsg.RemoveRaftVoterResponse, code int16) { r.ErrorCode = code }),

	// Always refused: what brokers and controllers say to each other, and what would be done in the sidecar's own name.
	kmsg.LeaderAndISR: {}, kmsg.StopReplica: {}, kmsg.UpdateMetadata: {}, kmsg.ControlledShutdown: {}, kmsg.WriteTxnMarkers: {},
	kmsg.Vote: {}, kmsg.BeginQuorumEpoch: {}, kmsg.EndQuorumEpoch: {}, kmsg.AlterPartition: {}, kmsg.Envelope: {}, kmsg.FetchSnapshot: {},
	kmsg.BrokerRegistration: {}, kmsg.BrokerHeartbeat: {}, kmsg.AllocateProducerIDs: {}, kmsg.ControllerRegistration: {},
	kmsg.AssignReplicasToDirs: {}, kmsg.UpdateRaftVoter: {}, kmsg.UnregisterController: {}, kmsg.InitializeShareGroupState: {},
	kmsg.ReadShareGroupState: {}, kmsg.WriteShareGroupState: {}, kmsg.DeleteShareGroupState: {}, kmsg.ReadShareGroupStateSummary: {},
	kmsg.CreateDelegationToken: {}, kmsg.RenewDelegationToken: {}, kmsg.ExpireDelegationToken: {}, kmsg.DescribeDelegationToken: {},

	// Refused until somebody needs them.
	kmsg.AlterReplicaLogDirs: {}, kmsg.StreamsGroupTopologyDescriptionUpdate: {},
}

// clusterOnly is a rule for requests that need the action cluster.
func clusterOnly[Q kmsg.Request, R kmsg.Response](refuse func(Q, R, int16)) rule {
	return whole(func(p *pass, _ Q) int16 { return p.cluster() }, refuse)
}

// refuses tells whether a rule refuses every request.
func (r rule) refuses() bool { return !r.harmless && r.judge == nil }
