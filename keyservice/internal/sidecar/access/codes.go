// Kafka's error codes that requests are answered with.

package access

// For refusals.
const (
	topicRefused         int16 = 29  // TOPIC_AUTHORIZATION_FAILED
	groupRefused         int16 = 30  // GROUP_AUTHORIZATION_FAILED
	clusterRefused       int16 = 31  // CLUSTER_AUTHORIZATION_FAILED
	transactionRefused   int16 = 53  // TRANSACTIONAL_ID_AUTHORIZATION_FAILED
	operationUnattempted int16 = 55  // OPERATION_NOT_ATTEMPTED
	sessionUnknown       int16 = 70  // FETCH_SESSION_ID_NOT_FOUND
	topicIDUnknown       int16 = 100 // UNKNOWN_TOPIC_ID
)

// For what may pass off: clients try again.
const (
	leaderNotAvailable      int16 = 5  // LEADER_NOT_AVAILABLE
	requestTimedOut         int16 = 7  // REQUEST_TIMED_OUT
	coordinatorNotAvailable int16 = 15 // COORDINATOR_NOT_AVAILABLE
	notEnoughReplicas       int16 = 19 // NOT_ENOUGH_REPLICAS: says for certain that nothing was written
	storageError            int16 = 56 // KAFKA_STORAGE_ERROR
)
