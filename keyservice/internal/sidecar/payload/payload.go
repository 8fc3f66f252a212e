// Package payload encrypts what clients produce and decrypts what they fetch, for clients that can use no SDK (spec/sidecar.md,
// "Payload encryption"). It is a handler of the sidecar's flow; keys come from internal/keys, ciphers from encryptor and decryptor,
// batches from recordbatch.
package payload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/time/rate"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/decryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/encryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

// Action is what is done with a record that will never be readable (spec/kafka.md, "Failure actions").
type Action string

// Actions. There is no dead letter: a proxy that produced by itself would need rights of its own.
const (
	Fail Action = "fail"
	Skip Action = "skip"
	Mark Action = "mark"
)

// DefaultMaxPlaintext is that of spec/configuration.md, in bytes.
const DefaultMaxPlaintext = 64 << 20

// Options say how. Addresses and TLS are required.
type Options struct {
	Addresses    []string    // of the key service: https://host:port
	TLS          *tls.Config // for the key service; used as it is
	Keys         keys.Options
	Action       Action
	MaxPlaintext int                     // bytes
	Memory       int                     // bytes, of what is made of requests, and as many for responses
	BindKey      func(topic string) bool // which topics' values are bound to their record keys
	Log          *slog.Logger
	Metrics      prometheus.Registerer
}

// Handler takes part in every connection. It is safe for concurrent use.
type Handler struct {
	options Options
	client  *keyclient.Client
	cache   *keys.Cache
	enc     *encryptor.Encryptor
	ciphers *decryptor.Ciphers
	numbers *numbers
	logs    *rate.Limiter

	requests, responses *memory
}

const logsPerSecond = 5

var _ flow.Handler = (*Handler)(nil)

// New makes a handler. It does not connect.
func New(o Options) (*Handler, error) {
	switch {
	case o.Action != Fail && o.Action != Skip && o.Action != Mark:
		return nil, fmt.Errorf("the failure action is fail, skip or mark, not %q", o.Action)
	case o.MaxPlaintext < 1 || o.MaxPlaintext > 1<<30:
		return nil, errors.New("the longest plaintext is 1 to 1073741824 bytes")
	case o.Memory < sharesAtLeast*leastShare:
		return nil, fmt.Errorf("the memory is at least %d bytes", sharesAtLeast*leastShare)
	}
	h := &Handler{options: o, logs: rate.NewLimiter(logsPerSecond, logsPerSecond), requests: newMemory(o.Memory), responses: newMemory(o.Memory)}
	var err error
	if h.client, err = keyclient.New(o.Addresses, o.TLS); err != nil {
		return nil, err
	}
	if h.ciphers, err = decryptor.NewCiphers(); err != nil {
		return nil, err
	}
	if h.cache, err = keys.New(h.client, o.Keys, h.forget); err != nil {
		return nil, err
	}
	h.enc = encryptor.New(h.cache, o.MaxPlaintext)
	h.numbers, err = newNumbers(o.Metrics, h.cache, h.requests, h.responses)
	return h, err
}

func (h *Handler) forget(kid datakey.ID) {
	h.enc.Forget(kid)
	h.ciphers.Forget(kid)
}

// Close wipes the keys and reports what was encrypted. No connection may be open any more.
func (h *Handler) Close() {
	h.cache.Close()
	h.client.Close()
}

// Keys of Kafka's APIs. The last two read records in a way that this package does not know, so they are refused.
const (
	produceKey          = int16(kmsg.Produce)
	fetchKey            = int16(kmsg.Fetch)
	apiVersionsKey      = int16(kmsg.ApiVersions)
	shareFetchKey       = int16(kmsg.ShareFetch)
	shareAcknowledgeKey = int16(kmsg.ShareAcknowledge)
)

// Wants implements [flow.Handler].
func (*Handler) Wants(key, _ int16) flow.Want {
	switch key {
	case produceKey, fetchKey:
		return flow.Want{Request: flow.Body, Response: flow.Body}
	case apiVersionsKey:
		return flow.Want{Response: flow.Body}
	case shareFetchKey, shareAcknowledgeKey:
		return flow.Want{Request: flow.Head}
	}
	return flow.Want{}
}

// Request implements [flow.Handler].
func (h *Handler) Request(ctx context.Context, x *flow.Exchange) error {
	switch request := x.Request.(type) {
	case *kmsg.ProduceRequest:
		return h.produce(ctx, x, request)
	case *kmsg.FetchRequest:
		return h.fetch(x, request)
	}
	refuseShareGroup(x)
	return nil
}

// refuseShareGroup answers as a broker does that has no share groups [CL-SDC-115].
func refuseShareGroup(x *flow.Exchange) {
	code, why := kerr.UnsupportedVersion.Code, "cipherlane: share groups are not possible where the sidecar encrypts: use consumer groups, or an SDK"
	if x.Key == shareFetchKey {
		r := kmsg.NewPtrShareFetchResponse()
		r.ErrorCode, r.ErrorMessage = code, &why
		x.Answer(r)
		return
	}
	r := kmsg.NewPtrShareAcknowledgeResponse()
	r.ErrorCode, r.ErrorMessage = code, &why
	x.Answer(r)
}

// Response implements [flow.Handler].
func (h *Handler) Response(ctx context.Context, x *flow.Exchange) error {
	switch response := x.Response.(type) {
	case *kmsg.ProduceResponse:
		produced(x, response)
		return nil
	case *kmsg.FetchResponse:
		return h.fetched(ctx, x, response)
	case *kmsg.ApiVersionsResponse:
		hideShareGroups(x, response)
		return nil
	}
	return fmt.Errorf("a response of API %d was not expected", x.Key)
}

// hideShareGroups keeps clients from asking for what would be refused.
func hideShareGroups(x *flow.Exchange, response *kmsg.ApiVersionsResponse) {
	kept := response.ApiKeys[:0]
	for _, api := range response.ApiKeys {
		if api.ApiKey != shareFetchKey && api.ApiKey != shareAcknowledgeKey {
			kept = append(kept, api)
		}
	}
	response.ApiKeys = kept
	x.ChangeResponse()
}

// failed counts and logs what went wrong with records of a partition.
func (h *Handler) failed(ctx context.Context, x *flow.Exchange, doing, topic string, partition int32, err error) {
	h.numbers.failures.WithLabelValues(string(codeOf(err))).Inc()
	if h.logs.Allow() {
		h.options.Log.WarnContext(ctx, "records refused", "while", doing, "topic", topic, "partition", partition,
			"connection", x.Conn.ID, "principal", x.Conn.Principal, "error", err)
	}
}

// resolve gives names by topic ids. Ids that are nobody's are missing, and so are those that are not known while the cluster does not
// answer: clients are told that the id is unknown, and ask for Metadata, by which the sidecar learns too.
func (h *Handler) resolve(ctx context.Context, x *flow.Exchange, ids [][16]byte) map[[16]byte]string {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	names, err := x.Conn.Topics.Resolve(ctx, ids)
	if err == nil {
		return names
	}
	if h.logs.Allow() {
		h.options.Log.WarnContext(ctx, "the cluster does not say which topics ids are of, so they are refused", "connection", x.Conn.ID, "error", err)
	}
	names = map[[16]byte]string{}
	for _, id := range ids {
		if name, known := x.Conn.Topics.Name(id); known {
			names[id] = name
		}
	}
	return names
}
