// The harness of the end-to-end tests: the program as a child process, real TLS clients, and every answer held against
// spec/openapi.yaml.

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/dev"
)

const runAsProgram = "CIPHERLANE_TEST_RUN_AS_PROGRAM"

// TestMain lets the test binary be the program: a child is then built like the tests, with the race detector.
func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		os.Exit(run(os.Args[1:], commandline.Standard()))
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), runAsProgram+"=1")
	return cmd
}

// buffer collects the output of a child while the test reads it.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// keyService is a running child.
type keyService struct {
	dev.Running
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *buffer
	done   chan struct{}
	err    error // of the process, once done is closed
}

// testPolicy has leases short enough to tell apart.
const testPolicy = `version: 1
lease: {expires_in: 5m}
topics:
  - topics: ["claims", "claims.*"]
    mode: encrypt
    scope: claims
  - topics: ["public.*"]
    mode: clear
  - topics: ["*.secret"]
    mode: forbid
  - topics: ["old"]
    mode: encrypt
    plaintext: accept
  - topics: ["t-*"]
    mode: encrypt
grants:
  - principals: ["spiffe://dev.cipherlane/producer"]
    actions: [encrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/consumer"]
    actions: [decrypt]
    topics: ["*"]
    lease: {expires_in: 1s}
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [rotate]
    scopes: ["*"]
`

// start starts the dev command on a new folder with testPolicy.
func start(t *testing.T) *keyService {
	t.Helper()
	return startIn(t, newFolder(t, testPolicy))
}

func newFolder(t *testing.T, policy string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dev")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func startIn(t *testing.T, dir string, flags ...string) *keyService {
	t.Helper()
	return launch(t, program(t, append([]string{"dev", "--dir", dir, "--json", "--until-stdin-closes", "--log-level", "debug"}, flags...)...))
}

func launch(t *testing.T, cmd *exec.Cmd) *keyService {
	t.Helper()
	k := &keyService{cmd: cmd, stderr: &buffer{}, done: make(chan struct{})}
	k.cmd.Stderr = k.stderr
	stdin, err := k.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.stdin = stdin
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		k.err = k.cmd.Wait()
		close(k.done)
	}()
	t.Cleanup(func() { k.stop(t) })
	if err := json.Unmarshal([]byte(line), &k.Running); err != nil {
		t.Fatalf("not ready: %v; %s", err, k.stderr)
	}
	return k
}

// stop ends the child by closing its input, or by force after a while.
func (k *keyService) stop(t *testing.T) {
	t.Helper()
	_ = k.stdin.Close()
	select {
	case <-k.done:
	case <-time.After(20 * time.Second):
		_ = k.cmd.Process.Kill()
		<-k.done
		t.Error("the key service did not stop")
	}
	if strings.Contains(k.stderr.String(), "DATA RACE") {
		t.Errorf("data race: %s", k.stderr)
	}
}

func (k *keyService) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := k.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain for: %s", what)
}

// tlsConfig is that of a client with a principal's certificate; none for "".
func (k *keyService) tlsConfig(t *testing.T, principal string) *tls.Config {
	t.Helper()
	ca, err := os.ReadFile(k.CA)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	cfg.RootCAs.AppendCertsFromPEM(ca)
	if principal == "" {
		return cfg
	}
	pair, err := tls.LoadX509KeyPair(k.Principals[principal].Certificate, k.Principals[principal].Key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg
}

// client makes an HTTP client that follows no redirect.
func client(t *testing.T, cfg *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: cfg.Clone(), ForceAttemptHTTP2: true} // which writes into it
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what came back.
type answer struct {
	Status  int
	Header  http.Header
	Body    []byte
	Members map[string]any
}

func (a answer) text(member string) string {
	text, _ := a.Members[member].(string)
	return text
}

// post calls as a principal and holds the answer against the specification.
func (k *keyService) post(t *testing.T, principal, path, body string) answer {
	t.Helper()
	return k.postWith(t, client(t, k.tlsConfig(t, principal)), path, body)
}

func (k *keyService) postWith(t *testing.T, c *http.Client, path, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return do(t, c, request)
}

func do(t *testing.T, c *http.Client, request *http.Request) answer {
	t.Helper()
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{Status: response.StatusCode, Header: response.Header, Body: body}
	checkAgainstSpec(t, request.URL.Path, &a)
	return a
}

func (k *keyService) encryptionKey(t *testing.T, topic string) answer {
	t.Helper()
	a := k.post(t, "producer", "/v1/encryption-key", `{"topic":"`+topic+`"}`)
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return a
}

// refuses sees that a call ends in a status and a code.
func refuses(t *testing.T, a answer, status int, code string) {
	t.Helper()
	if a.Status != status || a.text("code") != code {
		t.Errorf("%d %s; want %d %s", a.Status, a.Body, status, code)
	}
}
