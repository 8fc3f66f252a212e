package access

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// The numbers are Kafka's for these names.
func TestCodes(t *testing.T) {
	for code, want := range map[int16]*kerr.Error{
		topicRefused: kerr.TopicAuthorizationFailed, groupRefused: kerr.GroupAuthorizationFailed, clusterRefused: kerr.ClusterAuthorizationFailed,
		transactionRefused: kerr.TransactionalIDAuthorizationFailed, operationUnattempted: kerr.OperationNotAttempted,
		sessionUnknown: kerr.FetchSessionIDNotFound, topicIDUnknown: kerr.UnknownTopicID, leaderNotAvailable: kerr.LeaderNotAvailable,
		requestTimedOut: kerr.RequestTimedOut, coordinatorNotAvailable: kerr.CoordinatorNotAvailable,
		notEnoughReplicas: kerr.NotEnoughReplicas, storageError: kerr.KafkaStorageError,
	} {
		if code != want.Code {
			t.Errorf("%d is not %v", code, want)
		}
	}
}
