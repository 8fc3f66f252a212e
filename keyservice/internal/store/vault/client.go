// One request to Vault: JSON in, JSON out, bounded in time and size, retried where that is safe, its failure classified.

package vault

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/hashicorp/vault/api"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const (
	maxAnswer    = 4 << 20 // bytes; a page of keys has some 400 KB
	minRetryWait = 50 * time.Millisecond
	maxRetryWait = time.Second
)

// errAbsent says that KV has nothing at a path: Vault's empty 404.
var errAbsent = errors.New("nothing is stored there")

// client talks to Vault. Safe for concurrent use.
type client struct {
	api     *api.Client
	session *session
	timeout time.Duration
}

// newAPI makes a client that takes nothing from the environment: neither VAULT_SKIP_VERIFY nor VAULT_TOKEN.
func newAPI(o Options, transport http.RoundTripper) (*api.Client, error) {
	cfg := &api.Config{
		Address:          o.Addresses[0],
		HttpClient:       &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		DisableRedirects: true,
	} // no retries: retryablehttp would lose the reason of the last failure, see persist
	c, err := api.NewClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("vault: make a client: %w", err)
	}
	headers := http.Header{api.RequestHeaderName: {"true"}}
	if o.Namespace != "" {
		headers.Set(api.NamespaceHeaderName, o.Namespace)
	}
	c.SetHeaders(headers)
	c.ClearToken()
	return c, nil
}

// get reads path into answer; it gives errAbsent for Vault's empty 404.
func (c *client) get(ctx context.Context, path string, query map[string][]string, answer any) error {
	return c.do(ctx, "GET "+path, answer, func(ctx context.Context) (*api.Response, error) {
		return c.api.Logical().ReadRawWithDataWithContext(ctx, path, query)
	})
}

// put writes body, which is wiped after, to path. Every write that the store makes may be repeated: it either has a
// version to compare (KV), changes nothing the second time, or makes one more version of a KEK than is needed.
func (c *client) put(ctx context.Context, path string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("vault: encode the request to %s: %w", path, err)
	}
	defer clear(encoded)
	return c.do(ctx, "PUT "+path, answer, func(ctx context.Context) (*api.Response, error) {
		return c.api.Logical().WriteRawWithContext(ctx, path, encoded)
	})
}

type send func(context.Context) (*api.Response, error)

// do sends a request, again with a new token when the old one turns out to be invalid.
func (c *client) do(ctx context.Context, op string, answer any, send send) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	token := c.api.Token()
	err := persist(ctx, func() error { return once(ctx, op, answer, send) })
	if reasonOf(err) != Denied {
		return err
	}
	if err := c.session.replace(ctx, token); err != nil {
		if errors.Is(err, errTokenValid) {
			return errDenied(op, err)
		}
		return &Error{Reason: TokenInvalid, Op: op, Text: err.Error(), Cause: err}
	}
	return persist(ctx, func() error { return once(ctx, op, answer, send) })
}

// persist tries again while the failure is one that passes and time is left. It gives the last failure that says more
// than that time ran out.
func persist(ctx context.Context, try func() error) error {
	var last error
	for attempt := 0; ; attempt++ {
		err := try()
		if !errors.Is(err, store.ErrUnavailable) || badCertificate(err) {
			return err
		}
		if last == nil || reasonOf(err) != TimedOut {
			last = err
		}
		if !pause(ctx, attempt) {
			return last
		}
	}
}

// badCertificate tells a certificate that does not verify: it will not verify later either.
func badCertificate(err error) bool {
	_, bad := errors.AsType[*tls.CertificateVerificationError](err)
	return bad
}

// pause waits, with jitter so that replicas do not come back together. It gives up when the wait would outlast ctx.
func pause(ctx context.Context, attempt int) bool {
	wait := min(maxRetryWait, minRetryWait<<min(attempt, 10))
	wait = wait/2 + rand.N(wait/2+1) // #nosec G404 -- jitter
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func errDenied(op string, err error) error {
	return &Error{Reason: Denied, Op: op, Status: http.StatusForbidden, Text: "the token is valid, but its policies do not allow this", Cause: err}
}

func once(ctx context.Context, op string, answer any, send send) error {
	response, err := send(ctx)
	if response != nil {
		defer func() { _ = response.Body.Close() }()
	}
	if response != nil && response.StatusCode == http.StatusNotFound {
		return absent(op, response, err)
	}
	if err != nil {
		return classify(op, err)
	}
	if status := response.StatusCode; status >= http.StatusMultipleChoices { // a redirect: no error to package api
		return &Error{Reason: statusReason(status, ""), Op: op, Status: status, Text: "a redirect, which is not followed"}
	}
	return decode(op, response, answer)
}

// absent takes a 404 for "nothing there" only if it says what Vault's KV engine says then: an empty list of errors.
// A deleted version has data, a missing mount an error, and anything else was not said by Vault.
func absent(op string, response *api.Response, err error) error {
	body, readErr := io.ReadAll(response.Body)
	if readErr != nil {
		return classify(op, readErr)
	}
	var said struct {
		Errors *[]string `json:"errors"`
		Data   *struct {
			Metadata *struct {
				Deleted string `json:"deletion_time"`
			} `json:"metadata"`
		} `json:"data"`
	}
	switch {
	case json.Unmarshal(body, &said) != nil:
		return &Error{Reason: BadAnswer, Op: op, Status: http.StatusNotFound, Text: "a 404 that Vault would not send: is this Vault's address?"}
	case said.Data != nil && said.Data.Metadata != nil:
		return damaged(op, "it was deleted in Vault at %s: undelete it or restore a snapshot", said.Data.Metadata.Deleted)
	case said.Errors != nil && len(*said.Errors) == 0:
		return errAbsent
	default:
		return classify(op, err)
	}
}

// decode reads an answer and wipes its bytes after. Members that are not asked for are ignored: Vault adds some with time.
func decode(op string, response *api.Response, answer any) error {
	var body bytes.Buffer
	defer func() { clear(body.Bytes()) }()
	if _, err := body.ReadFrom(response.Body); err != nil {
		if reason := reasonOf(err); reason != "" {
			return err
		}
		return classify(op, err)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body.Bytes(), answer); err != nil {
		return &Error{Reason: BadAnswer, Op: op, Status: response.StatusCode, Text: "it is not the JSON that Vault would send"}
	}
	return nil
}
