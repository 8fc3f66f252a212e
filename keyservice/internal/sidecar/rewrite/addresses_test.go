package rewrite

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

// book knows all brokers but the third.
type book struct{ alive []int32 }

func (*book) Advertise(id int32, _ string, _ int32) (string, int32, error) {
	if id == 3 {
		return "", 0, errors.New("no port for this one")
	}
	return "127.0.0.1", 19000 + id, nil
}

func (b *book) Alive(ids []int32) { b.alive = ids }

func through(t *testing.T, r kmsg.Response) (*flow.Exchange, *book) {
	t.Helper()
	b := &book{}
	a := &Addresses{Book: b, Log: slog.New(slog.DiscardHandler)}
	if a.Wants(r.Key(), r.MaxVersion()).Response < flow.Tagged {
		t.Fatalf("%d is not looked at", r.Key())
	}
	x := &flow.Exchange{Key: r.Key(), Version: r.MaxVersion(), Response: r}
	if err := a.Response(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	return x, b
}

// [CL-SDC-011]
func TestMetadata(t *testing.T) {
	r := kmsg.NewPtrMetadataResponse()
	for id := range int32(5) {
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = id, "broker.internal", 9092
		r.Brokers = append(r.Brokers, b)
	}
	x, seen := through(t, r)
	if !x.ResponseChanged() || len(r.Brokers) != 4 || len(seen.alive) != 5 {
		t.Fatal(r.Brokers, seen.alive)
	}
	for _, b := range r.Brokers {
		if b.Host != "127.0.0.1" || b.Port != 19000+b.NodeID || b.NodeID == 3 {
			t.Errorf("%+v", b)
		}
	}
}

// [CL-SDC-011] A coordinator that cannot be reached is not available; one that the broker does not know has no address.
func TestCoordinators(t *testing.T) {
	r := kmsg.NewPtrFindCoordinatorResponse()
	for id, code := range []int16{0, 0, 16, 0} {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.NodeID, c.Host, c.Port, c.ErrorCode = int32(id), "broker.internal", 9092, code
		r.Coordinators = append(r.Coordinators, c)
	}
	through(t, r)
	for id, want := range []kmsg.FindCoordinatorResponseCoordinator{
		{NodeID: 0, Host: "127.0.0.1", Port: 19000},
		{NodeID: 1, Host: "127.0.0.1", Port: 19001},
		{NodeID: -1, Port: -1, ErrorCode: 16},
		{NodeID: -1, Port: -1, ErrorCode: 15},
	} {
		got := r.Coordinators[id]
		if got.NodeID != want.NodeID || got.Host != want.Host || got.Port != want.Port || got.ErrorCode != want.ErrorCode {
			t.Errorf("%+v, expected %+v", got, want)
		}
	}
}

// [CL-SDC-011]
func TestCluster(t *testing.T) {
	r := kmsg.NewPtrDescribeClusterResponse()
	b := kmsg.NewDescribeClusterResponseBroker()
	b.NodeID, b.Host, b.Port = 1, "broker.internal", 9092
	r.Brokers, r.EndpointType = append(r.Brokers, b), 1
	through(t, r)
	if r.Brokers[0].Port != 19001 {
		t.Fatal(r.Brokers)
	}
	r.EndpointType = controllers
	through(t, r)
	if len(r.Brokers) != 0 {
		t.Fatal("addresses of controllers were passed on")
	}
}

// [CL-SDC-012] Endpoint and leader are kept together or taken out together.
func TestLeaders(t *testing.T) {
	produced, fetched := kmsg.NewPtrProduceResponse(), kmsg.NewPtrFetchResponse()
	shared, acknowledged := kmsg.NewPtrShareFetchResponse(), kmsg.NewPtrShareAcknowledgeResponse()
	produced.Topics = []kmsg.ProduceResponseTopic{{}}
	fetched.Topics = []kmsg.FetchResponseTopic{{}}
	shared.Topics = []kmsg.ShareFetchResponseTopic{{}}
	acknowledged.Topics = []kmsg.ShareAcknowledgeResponseTopic{{}}
	for id := range int32(5) {
		produced.Brokers = append(produced.Brokers, kmsg.ProduceResponseBroker{NodeID: id, Host: "b", Port: 1})
		fetched.Brokers = append(fetched.Brokers, kmsg.FetchResponseBroker{NodeID: id, Host: "b", Port: 1})
		shared.NodeEndpoints = append(shared.NodeEndpoints, kmsg.ShareFetchResponseNodeEndpoint{NodeID: id, Host: "b", Port: 1})
		acknowledged.NodeEndpoints = append(acknowledged.NodeEndpoints, kmsg.ShareAcknowledgeResponseNodeEndpoint{NodeID: id, Host: "b", Port: 1})
		p, f := kmsg.NewProduceResponseTopicPartition(), kmsg.NewFetchResponseTopicPartition()
		s, a := kmsg.NewShareFetchResponseTopicPartition(), kmsg.NewShareAcknowledgeResponseTopicPartition()
		p.CurrentLeader.LeaderID, f.CurrentLeader.LeaderID, s.CurrentLeader.LeaderID, a.CurrentLeader.LeaderID = id, id, id, id
		produced.Topics[0].Partitions = append(produced.Topics[0].Partitions, p)
		fetched.Topics[0].Partitions = append(fetched.Topics[0].Partitions, f)
		shared.Topics[0].Partitions = append(shared.Topics[0].Partitions, s)
		acknowledged.Topics[0].Partitions = append(acknowledged.Topics[0].Partitions, a)
	}
	for _, r := range []kmsg.Response{produced, fetched, shared, acknowledged} {
		through(t, r)
	}
	for id := range int32(5) {
		want := id
		if id == 3 {
			want = -1
		}
		for i, got := range []int32{
			produced.Topics[0].Partitions[id].CurrentLeader.LeaderID, fetched.Topics[0].Partitions[id].CurrentLeader.LeaderID,
			shared.Topics[0].Partitions[id].CurrentLeader.LeaderID, acknowledged.Topics[0].Partitions[id].CurrentLeader.LeaderID,
		} {
			if got != want {
				t.Errorf("message %d: leader %d, expected %d", i, got, want)
			}
		}
	}
	if len(produced.Brokers) != 4 || len(fetched.Brokers) != 4 || len(shared.NodeEndpoints) != 4 || len(acknowledged.NodeEndpoints) != 4 {
		t.Error("an endpoint that leads nowhere was kept")
	}
}
