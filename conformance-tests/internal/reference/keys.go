package reference

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

// Which refusals end a lease at once [CL-KEY-008].
var final = []string{"not-authorized", "topic-unknown", "topic-forbidden", "scope-mismatch", "key-unknown", "key-destroyed", "unauthenticated"}

// The least time between two requests for the same thing after a failure.
const backoff = 500 * time.Millisecond

// keys asks the key service and keeps what it said for the time of its lease. Safe for concurrent use; one request at a time.
type keys struct {
	urls   []string
	client *http.Client

	mu     sync.Mutex
	grants map[string]leased[grant]
	reads  map[string]leased[readable]
	held   map[[2]string]leased[held] // by topic and kid
}

// leased is an answer and its times, counted from when it was asked for [CL-KEY-005].
type leased[T any] struct {
	answer         T
	refresh, until time.Time
}

func lease[T any](answer T, asked time.Time, refresh, expires int) leased[T] {
	return leased[T]{answer, asked.Add(time.Duration(refresh) * time.Second), asked.Add(time.Duration(expires) * time.Second)}
}

// requestTimeout is what the settings say, or 5 seconds.
func requestTimeout(settings map[string]string) time.Duration {
	millis, err := strconv.Atoi(settings["cipherlane.keyservice.request.timeout.ms"])
	if err != nil || millis <= 0 {
		return 5 * time.Second
	}
	return time.Duration(millis) * time.Millisecond
}

func newKeys(settings map[string]string) (*keys, error) {
	config, err := tlsConfig(settings)
	if err != nil {
		return nil, refuse("configuration-invalid", "%v", err)
	}
	urls := strings.Split(settings["cipherlane.keyservice.urls"], ",")
	if slices.ContainsFunc(urls, func(u string) bool { return !strings.HasPrefix(u, "https://") }) {
		return nil, refuse("configuration-invalid", "cipherlane.keyservice.urls: an address is https://host:port")
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config},
		Timeout:       requestTimeout(settings),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	k := &keys{urls: urls, client: client}
	k.forget()
	return k, nil
}

func tlsConfig(settings map[string]string) (*tls.Config, error) {
	ca, err := os.ReadFile(settings["cipherlane.keyservice.tls.ca"])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("cipherlane.keyservice.tls.ca holds no certificate")
	}
	pair, err := tls.LoadX509KeyPair(settings["cipherlane.keyservice.tls.certificate"], settings["cipherlane.keyservice.tls.key"])
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
}

func (k *keys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.grants, k.reads, k.held = map[string]leased[grant]{}, map[string]leased[readable]{}, map[[2]string]leased[held]{}
}

func (k *keys) close() { k.forget(); k.client.CloseIdleConnections() }

// grant is what holds for writing to a topic.
func (k *keys) grant(topic string) (grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, old := time.Now(), k.grants[topic]
	if now.Before(old.refresh) {
		return old.answer, nil
	}
	g, err := k.askGrant(topic)
	if err == nil {
		k.grants[topic] = lease(g, now, g.refresh, g.expires)
		return g, nil
	}
	if now.Before(old.until) && !ends(err) {
		return old.answer, nil
	}
	delete(k.grants, topic)
	return grant{}, err
}

func (k *keys) askGrant(topic string) (grant, error) {
	status, contentType, body, err := k.post("/v1/encryption-key", map[string]any{"topic": topic})
	if err != nil {
		return grant{}, err
	}
	return encryptionAnswer(status, contentType, body)
}

// readable is what holds for reading a topic, with the keys of these kids.
func (k *keys) readable(topic string, kids []string) (readable, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	missing := k.missing(topic, kids, now)
	old := k.reads[topic]
	if len(missing) == 0 && (len(kids) > 0 || now.Before(old.refresh)) {
		return k.collect(topic, kids, old.answer.plaintext), nil
	}
	r, err := k.askKeys(topic, missing)
	if err != nil {
		k.backOff(topic, missing, now, err)
		if now.Before(old.until) && !ends(err) && len(k.missing(topic, kids, now)) == 0 {
			return k.collect(topic, kids, old.answer.plaintext), nil
		}
		return readable{}, err
	}
	k.reads[topic] = lease(r, now, r.refresh, r.expires)
	for kid, key := range r.keys {
		k.held[[2]string{topic, kid}] = lease(key, now, key.refresh, key.expires)
		if key.err != nil {
			k.backOff(topic, []string{kid}, now, key.err)
		}
	}
	return k.collect(topic, kids, r.plaintext), nil
}

// backOff answers with the same error for a while [CL-KEY-012].
func (k *keys) backOff(topic string, kids []string, now time.Time, err error) {
	for _, kid := range kids {
		k.held[[2]string{topic, kid}] = leased[held]{held{err: err}, now.Add(backoff), now.Add(backoff)}
	}
}

func (k *keys) missing(topic string, kids []string, now time.Time) []string {
	missing := []string{}
	for _, kid := range kids {
		if !now.Before(k.held[[2]string{topic, kid}].until) && !slices.Contains(missing, kid) {
			missing = append(missing, kid)
		}
	}
	return missing
}

func (k *keys) collect(topic string, kids []string, plaintext string) readable {
	r := readable{plaintext: plaintext, keys: map[string]held{}}
	for _, kid := range kids {
		r.keys[kid] = k.held[[2]string{topic, kid}].answer
	}
	return r
}

func (k *keys) askKeys(topic string, kids []string) (readable, error) {
	status, contentType, body, err := k.post("/v1/decryption-keys", map[string]any{"topic": topic, "kids": kids})
	if err != nil {
		return readable{}, err
	}
	return decryptionAnswer(kids, status, contentType, body)
}

func ends(err error) bool {
	var known *driver.Error
	return errors.As(err, &known) && slices.Contains(final, known.Code)
}

// post asks the addresses in turn; the next one only where one cannot be reached or answers 429 or 5xx [CL-KEY-014].
func (k *keys) post(path string, request any) (status int, contentType string, body []byte, err error) {
	payload, err := json.Marshal(request)
	if err != nil {
		return 0, "", nil, err
	}
	for _, url := range k.urls {
		status, contentType, body, err = k.postTo(strings.TrimSuffix(url, "/")+path, payload)
		if err == nil && status != http.StatusTooManyRequests && status < 500 {
			return status, contentType, body, nil
		}
	}
	if err != nil {
		err = refuse("key-service-unavailable", "%v", err)
	}
	return status, contentType, body, err
}

func (k *keys) postTo(url string, payload []byte) (int, string, []byte, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return 0, "", nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := k.client.Do(request)
	if err != nil {
		return 0, "", nil, fmt.Errorf("the key service: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	return answer.StatusCode, answer.Header.Get("Content-Type"), body, err
}
