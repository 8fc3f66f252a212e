// A real broker and a real key service, with the relay of the sidecar between the clients and the broker.

package payload

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/relay"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const policy = `version: 1
lease: {expires_in: 2s}
topics:
  - topics: ["clear"]
    mode: clear
  - topics: ["forbidden"]
    mode: forbid
  - topics: ["mixed"]
    mode: encrypt
    plaintext: accept
    scope: claims
  - topics: ["*"]
    mode: encrypt
    scope: claims
grants:
  - principals: ["spiffe://dev.cipherlane/producer"]
    actions: [encrypt, decrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [rotate, destroy, revoke, admin]
    scopes: ["*"]
`

const wait = 20 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	testservice.Remove()
	os.Exit(code)
}

// scene is what a test needs. Its topics have one partition.
type scene struct {
	broker  *testservice.Broker
	service *testservice.KeyService
}

func set(t *testing.T, topics string, flags ...string) *scene {
	t.Helper()
	return &scene{testservice.RunBroker(t, append([]string{"--topics", topics}, flags...)...), testservice.StartKeyService(t, policy)}
}

func (s *scene) tls(t *testing.T, principal string) *tls.Config {
	t.Helper()
	p := s.service.Principals[principal]
	config, err := operator.TLSConfig(s.service.CA, p.Certificate, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// handler makes one with these options.
func (s *scene) handler(t *testing.T, change func(*Options)) *Handler {
	t.Helper()
	o := Options{
		Addresses: []string{s.service.URL}, TLS: s.tls(t, "producer"), Keys: keys.Defaults(), Action: Fail, MaxPlaintext: DefaultMaxPlaintext, Memory: 512 << 20,
		BindKey: func(topic string) bool { return topic == "bound" }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// sidecar gives the address of a relay to the broker with a handler of these options.
func (s *scene) sidecar(t *testing.T, change func(*Options)) (address string, handler *Handler) {
	t.Helper()
	handler = s.handler(t, change)
	r := &relays{broker: s.broker.Bootstrap, options: relay.Options{
		Chain: flow.NewChain(protocol.Versions(), handler), Requests: wire.NewBudget(256 << 20), Responses: wire.NewBudget(256 << 20), MaxFrame: 100 << 20, InFlight: 100,
		Drain: time.Second, Stall: time.Minute,
	}}
	address = r.listen(t)
	t.Cleanup(r.close)
	return address, handler
}

// held gives the exchange, as the relay would: what a handler holds is given back at the end of the test.
func held(t *testing.T, x *flow.Exchange) *flow.Exchange {
	t.Helper()
	all := &flow.Holds{}
	x.HoldIn(all)
	t.Cleanup(all.GiveBack)
	return x
}

type relays struct {
	broker   string
	options  relay.Options
	topics   *topicNames
	listener net.Listener
	open     sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func (r *relays) listen(t *testing.T) string {
	t.Helper()
	plain, err := kgo.NewClient(kgo.SeedBrokers(r.broker))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	r.topics = &topicNames{kadm.NewClient(plain)}
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	r.open.Go(func() {
		for {
			client, err := r.listener.Accept()
			if err != nil {
				return
			}
			r.open.Go(func() { r.serve(client) })
		}
	})
	return r.listener.Addr().String()
}

func (r *relays) serve(client net.Conn) {
	upstream, err := net.Dial("tcp", r.broker)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, client)
	r.mu.Unlock()
	in, _ := client.(*net.TCPConn)
	out, _ := upstream.(*net.TCPConn)
	_ = relay.Serve(context.Background(), &flow.Conn{Topics: r.topics}, wire.Plain(in, time.Minute), wire.Plain(out, time.Minute), r.options)
}

func (r *relays) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.open.Wait()
}

// topicNames asks the broker.
type topicNames struct{ admin *kadm.Client }

func (*topicNames) Name([16]byte) (string, bool) { return "", false }

func (n *topicNames) Resolve(ctx context.Context, _ [][16]byte) (map[[16]byte]string, error) {
	topics, err := n.admin.ListTopics(ctx)
	names := map[[16]byte]string{}
	for name, topic := range topics {
		names[topic.ID] = name
	}
	return names, err
}

// client connects to an address whatever address a broker tells.
func client(t *testing.T, address string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	options = append([]kgo.Opt{kgo.SeedBrokers(address), kgo.Dialer(dial), kgo.RecordRetries(2), kgo.FetchMaxWait(200 * time.Millisecond)}, options...)
	c, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func produce(t *testing.T, c *kgo.Client, records ...*kgo.Record) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	return c.ProduceSync(ctx, records...).FirstErr()
}

// consume reads records of a topic from an offset on, until there are count or an error comes.
func consume(t *testing.T, address, topic string, from int64, count int, options ...kgo.Opt) ([]*kgo.Record, error) {
	t.Helper()
	at := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(from)}}
	c := client(t, address, append(options, kgo.ConsumePartitions(at), kgo.KeepRetryableFetchErrors())...)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	var all []*kgo.Record
	for len(all) < count {
		fetches := c.PollFetches(ctx)
		all = append(all, fetches.Records()...)
		if err := fetches.Err(); err != nil {
			return all, err
		}
		for _, e := range fetches.Errors() {
			return all, errors.Join(e.Err)
		}
	}
	return all, nil
}

// usageOf gives the records that the key service knows to be encrypted under the scope's key.
func usageOf(t *testing.T, s *scene) int64 {
	t.Helper()
	p := s.service.Principals["operator"]
	c, err := operator.Open(operator.Options{URL: s.service.URL, CA: s.service.CA, Certificate: p.Certificate, Key: p.Key})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scopes []operator.Scope `json:"scopes"`
	}
	if err := c.Get(t.Context(), "/v1/scopes", nil, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Scopes) == 0 {
		return 0
	}
	return got.Scopes[0].Records
}

// batchOf gives a batch of one record, "canary", with attributes.
func batchOf(t *testing.T, attributes int16) []byte {
	t.Helper()
	r := kmsg.Record{Value: []byte("canary")}
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: attributes, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1,
		Records: r.AppendTo(nil),
	}
	b.Length = int32(49 + len(b.Records))
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// maxVersions keeps Produce at a version that carries names of topics.
func maxVersions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(0, 12)
	return v
}
