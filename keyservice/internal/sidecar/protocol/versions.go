// Package protocol reads and writes Kafka's requests and responses with franz-go's kmsg: headers, bodies, and which APIs the
// sidecar understands. Frames come from outside: everything is bounded and refused with an error of its own.
package protocol

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// internal are the APIs that only brokers and controllers use among themselves: no client needs them.
var internal = map[int16]bool{
	4: true, 5: true, 6: true, 7: true, // LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown
	27: true,                                                                       // WriteTxnMarkers
	52: true, 53: true, 54: true, 56: true, 58: true, 59: true, 62: true, 63: true, // the quorum, Envelope, registration
	67: true, 70: true, 73: true, // AllocateProducerIds, ControllerRegistration, AssignReplicasToDirs
	82: true, 83: true, 84: true, 85: true, 86: true, 87: true, // UpdateRaftVoter, the state of share groups
}

// lowest are the APIs whose first versions the sidecar does not take: after SaslHandshake 0 come bytes that are no frames.
var lowest = map[int16]int16{17: 1}

type versions struct {
	highest  map[int16]int16
	flexible []int16 // by key, the first flexible version; one past the highest if none is
	spans    []span  // by key
}

// span is from the lowest to the highest version that may pass: none if the highest is lower.
type span struct{ low, high int16 }

var known = sync.OnceValue(func() versions {
	v := versions{map[int16]int16{}, make([]int16, kmsg.MaxKey+1), make([]span, kmsg.MaxKey+1)}
	for key := range int16(kmsg.MaxKey + 1) {
		v.spans[key] = span{0, -1}
		r := kmsg.RequestForKey(key)
		if r == nil || internal[key] {
			continue
		}
		v.highest[key] = r.MaxVersion()
		v.flexible[key] = firstFlexible(r)
		v.spans[key] = span{lowest[key], r.MaxVersion()}
	}
	return v
})

func firstFlexible(r kmsg.Request) int16 {
	for version := range r.MaxVersion() + 1 {
		r.SetVersion(version)
		if r.IsFlexible() {
			return version
		}
	}
	return r.MaxVersion() + 1
}

// Versions gives the highest version understood of each API that clients use. The map must not be changed.
func Versions() map[int16]int16 { return known().highest }

// Understood tells whether a request may pass.
func Understood(key, version int16) bool {
	spans := known().spans
	return key >= 0 && int(key) < len(spans) && version >= spans[key].low && version <= spans[key].high
}

// Clamp leaves of a broker's ApiVersions what the sidecar understands, and tells whether that changed it.
func Clamp(r *kmsg.ApiVersionsResponse) (changed bool) {
	kept := r.ApiKeys[:0]
	for _, api := range r.ApiKeys {
		highest, ok := known().highest[api.ApiKey]
		low, high := max(api.MinVersion, lowest[api.ApiKey]), min(api.MaxVersion, highest)
		if !ok || low > high {
			changed = true
			continue
		}
		changed = changed || low != api.MinVersion || high != api.MaxVersion
		api.MinVersion, api.MaxVersion = low, high
		kept = append(kept, api)
	}
	r.ApiKeys = kept
	return changed
}

func isFlexible(key, version int16) bool { return version >= known().flexible[key] }
