// Connections: TLS with a CA that is always checked, several addresses tried in turn, answers bounded in size.

package vault

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

const maxPEM = 1 << 20

// endpoints sends each request to the address that answered last, and moves on when one fails.
type endpoints struct {
	addresses []*url.URL
	at        atomic.Uint32
	base      *http.Transport
	trip      http.RoundTripper // base, with what is around it
	observer  Observer
	engines   map[string]string // mount to what is there
}

func newTransport(o Options) (*endpoints, error) {
	tlsConfig, err := newTLS(o)
	if err != nil {
		return nil, err
	}
	e := &endpoints{observer: o.Observer, engines: map[string]string{o.Transit: "transit", o.KV: "kv"}, base: &http.Transport{
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   o.Timeout / 2,
		ResponseHeaderTimeout: o.Timeout / 2,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   32,
		MaxConnsPerHost:       128,
		ForceAttemptHTTP2:     true,
	}}
	e.trip = e.base
	if o.Wrap != nil {
		e.trip = o.Wrap(e.base)
	}
	for _, address := range o.Addresses {
		u, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("vault: address %q: %w", address, err)
		}
		e.addresses = append(e.addresses, u)
	}
	return e, nil
}

func newTLS(o Options) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pem, err := files.ReadTrusted(o.CA, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("vault: ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("vault: ca: %s holds no certificate", o.CA)
		}
	}
	if login := o.Login.Certificate; login != nil {
		if _, err := login.load(); err != nil {
			return nil, err
		}
		// Read for every handshake: whoever renews the certificate need not restart the service.
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return login.load() }
	}
	return cfg, nil
}

// RoundTrip implements http.RoundTripper.
func (e *endpoints) RoundTrip(request *http.Request) (*http.Response, error) {
	at := e.at.Load()
	address := e.addresses[int(at)%len(e.addresses)]
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host, request.Host = address.Scheme, address.Host, ""
	start := time.Now()
	response, err := e.trip.RoundTrip(request)
	e.observe(request, response, time.Since(start))
	if err != nil || mayPass(response.StatusCode) {
		e.at.CompareAndSwap(at, at+1)
	}
	if err == nil {
		response.Body = &boundedBody{body: response.Body, left: maxAnswer, op: request.Method + " " + request.URL.Path}
	}
	return response, err
}

func (e *endpoints) close() { e.base.CloseIdleConnections() }

// mayPass tells whether another address may answer better.
func mayPass(status int) bool {
	switch status {
	case http.StatusPreconditionFailed, http.StatusTooManyRequests, statusDRSecondary, statusStandby,
		http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect:
		return true
	default:
		return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
	}
}

// boundedBody fails, instead of ending early, when an answer is too long.
type boundedBody struct {
	body io.ReadCloser
	left int64
	op   string
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &Error{Reason: BadAnswer, Op: b.op, Text: fmt.Sprintf("the answer has more than %d bytes", maxAnswer)}
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error { return b.body.Close() }
