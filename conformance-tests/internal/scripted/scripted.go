// Package scripted is a key service that answers whatever a test says: what a real one never would, and what it would only
// in trouble. It speaks mutual TLS like a real one.
package scripted

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/pki"
)

// Call is one request to the service.
type Call struct {
	Path  string
	Topic string   `json:"topic"`
	Kids  []string `json:"kids"`
}

// Reply is what the service answers. Trouble, if set, answers in its own way.
type Reply struct {
	Status      int
	ContentType string
	Body        string
	Trouble     func(http.ResponseWriter)
}

// Script says what a call gets.
type Script func(Call) Reply

// Service runs until Close.
type Service struct {
	URL string

	authority *pki.Authority
	address   string
	server    *http.Server
	mu        sync.Mutex
	config    *tls.Config
	script    Script
	calls     []Call
}

// Start serves on a free port of loopback.
func Start(authority *pki.Authority) (*Service, error) {
	s := &Service{authority: authority, address: "127.0.0.1:0"}
	if err := s.Show(pki.Sound); err != nil {
		return nil, err
	}
	err := s.Restart()
	return s, err
}

// Show makes the service show a certificate of this validity in the handshakes to come, and ends the connections that there are.
func (s *Service) Show(valid pki.Validity) error {
	certificate, err := s.authority.Server(valid)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.config = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: s.authority.Pool(),
	}
	s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	s.Stop()
	return s.Restart()
}

// Stop ends the service and its connections: nobody listens any more.
func (s *Service) Stop() { _ = s.server.Close() }

// Restart serves at the same address as before.
func (s *Service) Restart() error {
	listener, err := tls.Listen("tcp", s.address, s.config)
	if err != nil {
		return err
	}
	s.address = listener.Addr().String()
	s.URL = "https://" + s.address
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server)
	return nil
}

// Play sets the script for the calls to come, and forgets those that were.
func (s *Service) Play(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.calls = script, nil
}

// Calls gives what was asked since the last Play.
func (s *Service) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call{}, s.calls...)
}

// Close stops the service at once.
func (s *Service) Close() { s.Stop() }

func (s *Service) serve(w http.ResponseWriter, request *http.Request) {
	call := Call{Path: request.URL.Path}
	body, err := io.ReadAll(request.Body)
	if err != nil || json.Unmarshal(body, &call) != nil {
		http.Error(w, "not a request of an SDK", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	script := s.script
	s.mu.Unlock()
	reply := script(call)
	if reply.Trouble != nil {
		reply.Trouble(w)
		return
	}
	w.Header()["Content-Type"] = nil
	if reply.ContentType != "" {
		w.Header().Set("Content-Type", reply.ContentType)
	}
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body)
}

// JSON is a reply of status 200.
func JSON(value any) Reply {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // values are made by this program
	}
	return Reply{Status: 200, ContentType: "application/json", Body: string(body)}
}

// WithLease is the reply with other times for its leases.
func WithLease(reply Reply, refresh, expires int) Reply {
	reply.Body = strings.NewReplacer(
		`"refresh_in":150`, fmt.Sprintf(`"refresh_in":%d`, refresh), `"expires_in":300`, fmt.Sprintf(`"expires_in":%d`, expires),
	).Replace(reply.Body)
	return reply
}

// Problem is a refusal with a code of errors.md.
func Problem(status int, code string) Reply {
	reply := JSON(map[string]any{"status": status, "title": "refused", "detail": "scripted", "code": code, "request_id": "scripted"})
	reply.Status, reply.ContentType = status, "application/problem+json"
	return reply
}

// Reset closes the connection in place of an answer.
func Reset(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := connection.(interface{ NetConn() net.Conn }); ok {
		_ = tcp.NetConn().Close()
	}
	_ = connection.Close()
}

// Key is the JSON of a data key with its lease.
func Key(scope, kid string, key []byte) map[string]any {
	return map[string]any{
		"scope": scope, "kid": kid, "key": base64.StdEncoding.EncodeToString(key), "refresh_in": 150, "expires_in": 300,
	}
}

// EncryptionKey is the answer of mode encrypt.
func EncryptionKey(scope, kid string, key []byte) Reply {
	answer := Key(scope, kid, key)
	answer["mode"] = "encrypt"
	return JSON(answer)
}

// Mode is the answer of mode clear or forbid.
func Mode(mode string) Reply {
	return JSON(map[string]any{"mode": mode, "refresh_in": 150, "expires_in": 300})
}

// KidProblem stands in the place of a key.
func KidProblem(kid, code string) map[string]any {
	return map[string]any{"kid": kid, "error": map[string]any{"code": code, "detail": "scripted"}}
}

// DecryptionKeys is the answer for a batch of kids.
func DecryptionKeys(plaintext string, entries []map[string]any) Reply {
	if entries == nil {
		entries = []map[string]any{}
	}
	return JSON(map[string]any{"plaintext": plaintext, "refresh_in": 150, "expires_in": 300, "keys": entries})
}
