// One renewal: a key, a request, the proof of who asks, and the answer.

package identityclient

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	weak "math/rand/v2"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
)

// Limits of what is read, in bytes.
const (
	maxPEM    = 1 << 20
	maxProof  = 16 << 10  // a token or a JWT
	maxAnswer = 256 << 10 // both texts, and what JSON makes of them
)

// callWithin bounds one call to one address.
const callWithin = 10 * time.Second

// proof is what shows who asks; one of its members is set.
type proof struct {
	bearer      string
	token       bool // bearer is a bootstrap token
	certificate *tls.Certificate
}

// renew gets the next certificate and uses it.
func (c *Client) renew(ctx context.Context) error {
	p, err := c.prove()
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // [CL-IDN-030]
	if err != nil {
		return err
	}
	request, err := c.request(key)
	if err != nil {
		return err
	}
	asked := time.Now()
	a, err := c.ask(ctx, p, request)
	if err != nil {
		return err
	}
	next, err := c.check(a, key, asked)
	if err != nil {
		return err
	}
	c.use(next)
	c.o.Log.Info("a new certificate is in use", "principal", next.Principal, "until", next.Certificate.Leaf.NotAfter)
	return nil
}

// prove chooses [CL-IDN-035]: the JWT where one is configured, else the certificate in use, else a token or new files.
func (c *Client) prove() (proof, error) {
	if c.o.JWTFile != "" {
		text, err := readProof(c.o.JWTFile)
		return proof{bearer: text}, err
	}
	if s := c.valid(); s != nil {
		return proof{certificate: &s.Certificate}, nil
	}
	if c.o.TokenFile == "" {
		if err := c.useFile(); err != nil {
			return proof{}, fmt.Errorf("%w: %w", ErrNone, err)
		}
		return proof{certificate: &c.current.Load().Certificate}, nil
	}
	text, err := readProof(c.o.TokenFile)
	switch {
	case err != nil:
		return proof{}, err
	case !strings.HasPrefix(text, token.Prefix):
		return proof{}, fmt.Errorf("%s holds no bootstrap token", c.o.TokenFile)
	case text == c.spent:
		return proof{}, fmt.Errorf("%w: the token in %s was used: put a new one there", ErrNone, c.o.TokenFile)
	}
	return proof{bearer: text, token: true}, nil
}

func readProof(path string) (string, error) {
	data, err := files.ReadCredential(path, maxProof)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(data))
	if text == "" || strings.ContainsAny(text, " \t\r\n,") {
		return "", fmt.Errorf("%s holds no token: one word is expected", path)
	}
	return text, nil
}

// request names servers only: who asks, the key service knows.
func (c *Client) request(key *ecdsa.PrivateKey) (string, error) {
	names, addresses := serverNames(c.o.DNSNames)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: names, IPAddresses: addresses}, key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// answer is that of POST /v1/certificate.
type answer struct {
	Certificate string    `json:"certificate"`
	CA          string    `json:"ca"`
	NotAfter    time.Time `json:"not_after"`
	RefreshIn   int64     `json:"refresh_in"`
	ExpiresIn   int64     `json:"expires_in"`
}

// ask tries the addresses in turn, until one answers.
func (c *Client) ask(ctx context.Context, p proof, csr string) (*answer, error) {
	client := &http.Client{Timeout: callWithin, Transport: c.transport(p), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(map[string]string{"csr": csr})
	if err != nil {
		return nil, err
	}
	var failures []error
	for range c.o.URLs {
		at := c.o.URLs[c.next%len(c.o.URLs)]
		a, spent, err := c.call(ctx, client, at, p, body)
		if spent && p.token {
			c.spent = p.bearer
		}
		if err == nil || spent && p.token {
			return a, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", at, err))
		c.next++
	}
	return nil, errors.Join(failures...)
}

func (c *Client) transport(p proof) *http.Transport {
	cfg := c.TLSConfig()
	cfg.GetClientCertificate = nil
	if p.certificate != nil {
		cfg.Certificates = []tls.Certificate{*p.certificate}
	}
	return &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true, TLSHandshakeTimeout: callWithin, DisableKeepAlives: true}
}

// call tells also whether a token that was sent is spent [CL-IDN-035]: it got a certificate, or was refused.
func (c *Client) call(ctx context.Context, client *http.Client, at string, p proof, body []byte) (a *answer, spent bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(at, "/")+"/v1/certificate", bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	request.Header.Set("Content-Type", "application/json")
	if p.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+p.bearer)
	}
	response, err := client.Do(request) // #nosec G704 -- the address is configured
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case err != nil:
		return nil, response.StatusCode == http.StatusOK, err
	case len(data) > maxAnswer:
		return nil, true, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case response.StatusCode != http.StatusOK:
		err := refused(response, data)
		known, ok := errors.AsType[*refusal.Error](err)
		return nil, ok && known.Code == refusal.Unauthenticated, err
	case kind != "application/json":
		return nil, true, errors.New("the answer is not that of a key service")
	}
	a = &answer{}
	if err := json.Unmarshal(data, a); err != nil {
		return nil, true, errors.New("the answer cannot be read")
	}
	return a, true, nil
}

func refused(response *http.Response, data []byte) error {
	var problem struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(data, &problem) != nil || problem.Code == "" {
		return fmt.Errorf("the key service answered %s", response.Status)
	}
	return refusal.New(refusal.Code(problem.Code), "the key service refused: %s", problem.Detail)
}

// jittered gives a time up to 10 % earlier than refresh [CL-IDN-031].
func jittered(asked time.Time, refresh time.Duration) time.Time {
	return asked.Add(refresh - time.Duration(weak.Float64()*float64(refresh)/10)) // #nosec G404 -- no secret
}
