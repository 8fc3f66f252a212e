// What a Kafka client is told.

package payload

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/cipherlane/cipherlane/keyservice/internal/decryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/encryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/recordbatch"
)

var (
	errControl = errors.New("a client must not send a control batch")
	errRequest = errors.New("encrypted, the request would be longer than a broker takes")
)

// passing are the errors that will pass [CL-ERR-004].
var passing = []refusal.Code{refusal.Unavailable, keys.LeaseExpired, refusal.AuditUnavailable, refusal.Internal}

// refused are those of who may do what with a topic.
var refused = []refusal.Code{refusal.NotAuthorized, refusal.TopicForbidden, refusal.TopicUnknown, refusal.TopicInvalid, refusal.Unauthenticated}

// ofRecord are those of which the record itself is the cause [CL-KAF-020].
var ofRecord = []refusal.Code{
	envelope.TooShort, envelope.UnsupportedVersion, envelope.UnsupportedFlags, decryptor.KeyUnavailable,
	refusal.KeyUnknown, refusal.KeyDestroyed, keyclient.KeyMalformed, keyclient.KeyIDMismatch,
	decryptor.AuthenticationFailed, decryptor.DecompressionFailed, decryptor.PlaintextTooLong, decryptor.PlaintextRejected, refusal.ScopeMismatch,
}

// codeOf gives the code of an error; those of damaged batches have none in spec/errors.md.
func codeOf(err error) refusal.Code {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r.Code
	}
	return "record-batch"
}

// ofBatch gives Kafka's error for a batch that cannot be taken apart, or nil.
func ofBatch(err error) *kerr.Error {
	switch {
	case errors.Is(err, recordbatch.ErrFormat):
		return kerr.UnsupportedForMessageFormat
	case errors.Is(err, recordbatch.ErrCodec):
		return kerr.UnsupportedCompressionType
	case errors.Is(err, recordbatch.ErrTooLarge), errors.Is(err, errRequest):
		return kerr.MessageTooLarge
	case errors.Is(err, errControl):
		return kerr.InvalidRecord
	case errors.Is(err, recordbatch.ErrCorrupt):
		return kerr.CorruptMessage
	}
	return nil
}

// whileProducing gives Kafka's error for a producer: retriable only where trying again may help.
func whileProducing(err error) *kerr.Error {
	code := codeOf(err)
	switch {
	case ofBatch(err) != nil:
		return ofBatch(err)
	case slices.Contains(passing, code):
		return kerr.NotEnoughReplicas // retriable, and says for certain that nothing was written
	case slices.Contains(refused, code):
		return kerr.TopicAuthorizationFailed
	case code == encryptor.PlaintextTooLong:
		return kerr.MessageTooLarge
	case code == encryptor.AmbiguousPlaintext:
		return kerr.InvalidRecord
	}
	return kerr.UnknownServerError
}

// whileFetching gives Kafka's error for a consumer.
func whileFetching(err error) *kerr.Error {
	code := codeOf(err)
	switch {
	case errors.Is(err, recordbatch.ErrFormat):
		return kerr.UnsupportedForMessageFormat
	case ofBatch(err) != nil, slices.Contains(ofRecord, code):
		return kerr.CorruptMessage
	case slices.Contains(passing, code):
		return kerr.KafkaStorageError // consumers try again, for as long as it takes
	case slices.Contains(refused, code):
		return kerr.TopicAuthorizationFailed
	}
	return kerr.UnknownServerError
}
