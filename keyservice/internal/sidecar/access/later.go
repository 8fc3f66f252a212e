// What a client is told while it is not known what it may: the key service does not answer, or the audit log cannot be written. Such errors are not
// those of a refusal: clients try again [CL-SDC-113].

package access

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// later gives the error after which a client sends a request of an API again. For records they are those of package payload.
func later(key kmsg.Key) int16 {
	switch key { //nolint:exhaustive // the others are administration
	case kmsg.Produce:
		return notEnoughReplicas
	case kmsg.Fetch, kmsg.ShareFetch, kmsg.ShareAcknowledge, kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch:
		return storageError
	case kmsg.Metadata:
		return leaderNotAvailable
	case kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.OffsetCommit, kmsg.OffsetFetch,
		kmsg.ConsumerGroupHeartbeat, kmsg.ShareGroupHeartbeat, kmsg.StreamsGroupHeartbeat, kmsg.InitProducerID, kmsg.AddPartitionsToTxn,
		kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit, kmsg.EndTxn:
		return coordinatorNotAvailable
	}
	return requestTimedOut
}

// passesOff tells whether asking again may help; that the sidecar itself is refused, or that nobody asks, does not pass off.
func passesOff(err error) bool {
	known, ok := errors.AsType[*refusal.Error](err)
	return ok && slices.Contains([]refusal.Code{refusal.Unavailable, refusal.AuditUnavailable, refusal.Internal}, known.Code)
}
