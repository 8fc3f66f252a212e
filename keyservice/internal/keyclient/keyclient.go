// Package keyclient is the client of the key service's two calls for data keys, over mutual TLS (spec/key-service.md, "What an SDK
// does"): several addresses, answers read strictly, refusals told apart. It keeps nothing: that is internal/keys.
package keyclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Limits of spec/limits.md and defaults of spec/configuration.md.
const (
	MaxKids        = 1000
	maxAnswer      = 1 << 20
	connectTimeout = 2 * time.Second
	requestTimeout = 5 * time.Second
)

// Client asks one of several replicas. It is safe for concurrent use.
type Client struct {
	addresses []string
	http      *http.Client
}

// New makes a client of the addresses (https://host:port), which are tried in turn. The certificate and whom to trust are in config,
// which is used as it is: a rotating certificate comes from its GetClientCertificate. It does not connect.
func New(addresses []string, config *tls.Config) (*Client, error) {
	if len(addresses) == 0 {
		return nil, errors.New("the key service has no address: https://host:port")
	}
	c := &Client{http: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			TLSClientConfig: config, TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // [CL-KEY-002]
	}}
	for _, text := range addresses {
		at, err := url.Parse(text)
		if err != nil || at.Scheme != "https" || at.Host == "" || strings.Trim(at.Path, "/") != "" || at.User != nil || at.RawQuery != "" {
			return nil, refusal.New("configuration-invalid", "the address of the key service is https://host:port, not %q", text)
		}
		c.addresses = append(c.addresses, "https://"+at.Host)
	}
	return c, nil
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Usage is what was encrypted under a key since the last report. Bytes counts plaintext.
type Usage struct {
	Kid     datakey.ID
	Records int64
	Bytes   int64
}

type encryptionRequest struct {
	Topic string        `json:"topic"`
	Usage *usageRequest `json:"usage,omitzero"`
}

type usageRequest struct {
	Kid     string `json:"kid"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
}

// EncryptionKey asks how to write to a topic, and reports usage unless it is nil.
//
// Errors: *refusal.Error with a code of spec/errors.md.
func (c *Client) EncryptionKey(ctx context.Context, topic string, usage *Usage) (*Grant, error) {
	request := encryptionRequest{Topic: topic}
	if usage != nil {
		request.Usage = &usageRequest{usage.Kid.String(), usage.Records, usage.Bytes}
	}
	got, err := c.post(ctx, "/v1/encryption-key", request)
	if err != nil {
		return nil, err
	}
	return got.grant()
}

type decryptionRequest struct {
	Topic string   `json:"topic"`
	Kids  []string `json:"kids"`
}

// DecryptionKeys asks for the keys of records read from a topic: at most [MaxKids] different ones, or none to learn how plaintext
// is met.
//
// Errors: *refusal.Error with a code of spec/errors.md.
func (c *Client) DecryptionKeys(ctx context.Context, topic string, kids []datakey.ID) (*Readable, error) {
	request := decryptionRequest{Topic: topic, Kids: make([]string, len(kids))}
	for i, kid := range kids {
		request.Kids[i] = kid.String()
	}
	got, err := c.post(ctx, "/v1/decryption-keys", request)
	if err != nil {
		return nil, err
	}
	return got.readable(kids)
}

// post tries the addresses in turn: the next one where one cannot be reached or answers 429 or 5xx [CL-KEY-014].
func (c *Client) post(ctx context.Context, path string, in any) (*answer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var got *answer
	for _, address := range c.addresses {
		got, err = c.postTo(ctx, address+path, body)
		if err == nil && got.status != http.StatusTooManyRequests && got.status < http.StatusInternalServerError {
			break
		}
	}
	if err != nil {
		return nil, &refusal.Error{Code: refusal.Unavailable, Detail: "the key service cannot be reached", Cause: err}
	}
	return got, nil
}

func (c *Client) postTo(ctx context.Context, address string, body []byte) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	return &answer{status: response.StatusCode, kind: response.Header.Get("Content-Type"), body: text}, err
}
