// Package operator is the client of the calls for operators (spec/operator.md), over mutual TLS. It never sees a data key, but for
// those that `cipherlane scan --decrypt` asks for as a consumer.
package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

const (
	maxAnswer = 8 << 20
	maxPEM    = 1 << 20
	timeout   = 30 * time.Second
)

// Options say where the key service is and who asks. All are required.
type Options struct {
	URL         string // https://host:port
	CA          string // PEM file: whom to trust
	Certificate string // PEM file: the operator's chain
	Key         string // PEM file: its private key, mode 0600
}

// Client calls one replica. It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
}

// Open reads the files. It does not connect.
func Open(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "https" || base.Host == "" || strings.Trim(base.Path, "/") != "" || base.User != nil {
		return nil, fmt.Errorf("the address of the key service is https://host:port, not %q", o.URL)
	}
	cfg, err := TLSConfig(o.CA, o.Certificate, o.Key)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: cfg, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, IdleConnTimeout: time.Minute,
	}
	return &Client{base: base, http: &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// TLSConfig trusts the certificates of a file only, and shows a certificate if one is given. An empty ca stands for those of the
// system.
func TLSConfig(ca, certificate, key string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := files.ReadTrusted(ca, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("CA: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA: %s holds no certificate in PEM form", ca)
		}
	}
	if certificate == "" && key == "" {
		return cfg, nil
	}
	pair, err := readPair(certificate, key)
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, err
}

func readPair(certificate, key string) (tls.Certificate, error) {
	chain, err := files.ReadTrusted(certificate, maxPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate: %w", err)
	}
	secret, err := files.ReadCredential(key, maxPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("private key: %w", err)
	}
	defer clear(secret)
	pair, err := tls.X509KeyPair(chain, secret)
	if err != nil {
		return pair, fmt.Errorf("certificate %s and private key %s: %w", certificate, key, err)
	}
	return pair, nil
}

// Address is where the client calls.
func (c *Client) Address() string { return c.base.String() }

// Get asks for path and decodes the answer into out.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, out)
}

// Post sends in as JSON (nothing for nil) and decodes the answer into out.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	return c.call(ctx, http.MethodPost, path, nil, in, out)
}

// Delete asks to remove path and decodes the answer into out.
func (c *Client) Delete(ctx context.Context, path string, out any) error {
	return c.call(ctx, http.MethodDelete, path, nil, nil, out)
}

func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	request, err := c.request(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request) // #nosec G704 -- the address is the operator's own
	if err != nil {
		return fmt.Errorf("the key service cannot be reached: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("the answer of %s broke off: %w", c.base.Host, err)
	}
	if response.StatusCode != http.StatusOK {
		return problemOf(response, body)
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "application/json" || len(body) > maxAnswer {
		return fmt.Errorf("the answer of %s is not that of a key service: is the address right?", c.base.Host)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the answer of %s cannot be read: %w", c.base.Host, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, in any) (*http.Request, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	at := c.base.JoinPath(path)
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// RefusedError is a refusal of the key service [CL-ERR-005].
type RefusedError struct {
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
}

// Error shows what to do, and what to look for in the service's log.
func (p *RefusedError) Error() string {
	return fmt.Sprintf("refused: %s: %s (request %s)", p.Code, p.Detail, p.RequestID)
}

func problemOf(response *http.Response, body []byte) error {
	p := &RefusedError{}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(body, p) != nil || p.Code == "" {
		return fmt.Errorf("%s answered %s, not as a key service does: is the address right?", response.Request.URL.Host, response.Status)
	}
	p.Status = response.StatusCode
	return p
}
