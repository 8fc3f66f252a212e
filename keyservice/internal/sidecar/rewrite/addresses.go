// Addresses in responses.

package rewrite

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

// Book knows where clients reach a broker. It is safe for concurrent use.
type Book interface {
	// Advertise gives the address for clients of a broker that gave its own. An error means that there is none.
	Advertise(id int32, host string, port int32) (string, int32, error)
	// Alive tells which brokers a full list of the cluster has.
	Alive(ids []int32)
}

// Addresses replaces every address that a broker sends [CL-SDC-011]. One that cannot be replaced is taken out: a client that got it
// would go past the sidecar.
type Addresses struct {
	Book Book
	Log  *slog.Logger
}

// Wants implements flow.Handler.
func (*Addresses) Wants(key, version int16) flow.Want {
	switch kmsg.Key(key) { //nolint:exhaustive // the others carry no addresses of brokers
	case kmsg.Metadata, kmsg.FindCoordinator, kmsg.DescribeCluster, kmsg.ShareFetch, kmsg.ShareAcknowledge:
		return flow.Want{Response: flow.Body}
	case kmsg.Produce:
		return wantFrom(version, 9)
	case kmsg.Fetch:
		return wantFrom(version, 12)
	default:
		return flow.Want{}
	}
}

// wantFrom is for addresses in tagged fields.
func wantFrom(version, flexible int16) flow.Want {
	if version < flexible {
		return flow.Want{}
	}
	return flow.Want{Response: flow.Tagged}
}

// Request implements flow.Handler.
func (*Addresses) Request(context.Context, *flow.Exchange) error { return nil }

// Response implements flow.Handler.
func (a *Addresses) Response(_ context.Context, x *flow.Exchange) error {
	changed := false
	switch r := x.Response.(type) {
	case *kmsg.MetadataResponse:
		changed = a.metadata(r)
	case *kmsg.FindCoordinatorResponse:
		changed = a.coordinators(r)
	case *kmsg.DescribeClusterResponse:
		changed = a.cluster(r)
	case *kmsg.ProduceResponse:
		changed = a.produce(r)
	case *kmsg.FetchResponse:
		changed = a.fetch(r)
	case *kmsg.ShareFetchResponse:
		changed = a.shareFetch(r)
	case *kmsg.ShareAcknowledgeResponse:
		changed = a.shareAcknowledge(r)
	}
	if changed {
		x.ChangeResponse()
	}
	return nil
}

func (a *Addresses) metadata(r *kmsg.MetadataResponse) bool {
	alive := make([]int32, 0, len(r.Brokers))
	for i := range r.Brokers {
		alive = append(alive, r.Brokers[i].NodeID)
	}
	before := len(r.Brokers)
	r.Brokers, _ = replace(a, r.Brokers, func(b *kmsg.MetadataResponseBroker) (int32, *string, *int32) { return b.NodeID, &b.Host, &b.Port })
	a.Book.Alive(alive)
	return before > 0
}

// controllers is the kind of endpoint of DescribeCluster that no sidecar stands before.
const controllers = 2

func (a *Addresses) cluster(r *kmsg.DescribeClusterResponse) bool {
	if r.EndpointType == controllers {
		r.Brokers = nil
		return true
	}
	before := len(r.Brokers)
	r.Brokers, _ = replace(a, r.Brokers, func(b *kmsg.DescribeClusterResponseBroker) (int32, *string, *int32) {
		return b.NodeID, &b.Host, &b.Port
	})
	return before > 0
}

const coordinatorNotAvailable = 15

func (a *Addresses) coordinators(r *kmsg.FindCoordinatorResponse) bool {
	a.coordinator(&r.NodeID, &r.Host, &r.Port, &r.ErrorCode)
	for i := range r.Coordinators {
		c := &r.Coordinators[i]
		a.coordinator(&c.NodeID, &c.Host, &c.Port, &c.ErrorCode)
	}
	return true
}

func (a *Addresses) coordinator(id *int32, host *string, port *int32, code *int16) {
	if *code == 0 && *host != "" && a.replace(*id, host, port) {
		return
	}
	if *code == 0 {
		*code = coordinatorNotAvailable
	}
	*id, *host, *port = flow.NoBroker, "", -1
}

func (a *Addresses) produce(r *kmsg.ProduceResponse) bool {
	before := len(r.Brokers)
	kept, lost := replace(a, r.Brokers, func(b *kmsg.ProduceResponseBroker) (int32, *string, *int32) { return b.NodeID, &b.Host, &b.Port })
	r.Brokers = kept
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			leader := &r.Topics[i].Partitions[j].CurrentLeader
			forget(lost, &leader.LeaderID, &leader.LeaderEpoch)
		}
	}
	return before > 0
}

func (a *Addresses) fetch(r *kmsg.FetchResponse) bool {
	before := len(r.Brokers)
	kept, lost := replace(a, r.Brokers, func(b *kmsg.FetchResponseBroker) (int32, *string, *int32) { return b.NodeID, &b.Host, &b.Port })
	r.Brokers = kept
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			leader := &r.Topics[i].Partitions[j].CurrentLeader
			forget(lost, &leader.LeaderID, &leader.LeaderEpoch)
		}
	}
	return before > 0
}

func (a *Addresses) shareFetch(r *kmsg.ShareFetchResponse) bool {
	before := len(r.NodeEndpoints)
	kept, lost := replace(a, r.NodeEndpoints, func(b *kmsg.ShareFetchResponseNodeEndpoint) (int32, *string, *int32) {
		return b.NodeID, &b.Host, &b.Port
	})
	r.NodeEndpoints = kept
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			leader := &r.Topics[i].Partitions[j].CurrentLeader
			forget(lost, &leader.LeaderID, &leader.LeaderEpoch)
		}
	}
	return before > 0
}

func (a *Addresses) shareAcknowledge(r *kmsg.ShareAcknowledgeResponse) bool {
	before := len(r.NodeEndpoints)
	kept, lost := replace(a, r.NodeEndpoints, func(b *kmsg.ShareAcknowledgeResponseNodeEndpoint) (int32, *string, *int32) {
		return b.NodeID, &b.Host, &b.Port
	})
	r.NodeEndpoints = kept
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			leader := &r.Topics[i].Partitions[j].CurrentLeader
			forget(lost, &leader.LeaderID, &leader.LeaderEpoch)
		}
	}
	return before > 0
}

// replace replaces the addresses of brokers, and tells which brokers it took out.
func replace[B any](a *Addresses, brokers []B, of func(*B) (int32, *string, *int32)) (kept []B, lost map[int32]bool) {
	kept = brokers[:0]
	for i := range brokers {
		id, host, port := of(&brokers[i])
		if a.replace(id, host, port) {
			kept = append(kept, brokers[i])
			continue
		}
		if lost == nil {
			lost = map[int32]bool{}
		}
		lost[id] = true
	}
	return kept, lost
}

func (a *Addresses) replace(id int32, host *string, port *int32) bool {
	newHost, newPort, err := a.Book.Advertise(id, *host, *port)
	if err != nil {
		a.Log.Warn("a broker cannot be reached through this sidecar: clients are not told of it", "broker", id, "error", err)
		return false
	}
	*host, *port = newHost, newPort
	return true
}

// forget takes out a leader whose endpoint was taken out: clients that had one without the other would go wrong [CL-SDC-012].
func forget(lost map[int32]bool, leader, epoch *int32) {
	if lost[*leader] {
		*leader, *epoch = -1, -1
	}
}
