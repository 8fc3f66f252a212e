package environment

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
	"syscall"
	"time"
)

const operatorTimeout = 10 * time.Second

// Operate makes a call of spec/operator.md as the operator and reads its answer into ok, which may be nil. A body of nil is none.
func (s *KeyService) Operate(method, path string, body, ok any) error {
	client, err := s.operator()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var payload io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, s.URL+path, payload)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		return errors.Join(err, fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, text))
	}
	if ok == nil {
		return nil
	}
	return json.Unmarshal(text, ok)
}

func (s *KeyService) operator() (*http.Client, error) {
	ca, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	files := s.Principals["operator"]
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return &http.Client{Timeout: operatorTimeout, Transport: &http.Transport{TLSClientConfig: config}}, nil
}

// Pause stops the process where it is, so that connections stay open and nobody answers.
func (s *KeyService) Pause() error { return s.process.signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *KeyService) Resume() error { return s.process.signal(syscall.SIGCONT) }
