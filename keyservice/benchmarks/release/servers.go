// The two servers, and the client that calls them.

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is a child process that stops when its standard input ends.
type server struct {
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
	tls   map[string]*tls.Config // by principal
}

type servers struct{ keyService, plain *server }

type ready struct {
	URL        string
	CA         string
	Principals map[string]struct{ Certificate, Key string }
}

func startServers(dir string) (*servers, error) {
	child, line, err := startChild(program, "dev", "--dir", dir, "--json", "--until-stdin-closes", "--log-level", "error")
	if err != nil {
		return nil, err
	}
	s := &servers{keyService: child}
	var at ready
	if err := json.Unmarshal(line, &at); err != nil {
		s.stop()
		return nil, err
	}
	if child.tls, err = clientTLS(at); err != nil {
		s.stop()
		return nil, err
	}
	child.url = at.URL
	self, err := os.Executable()
	if err == nil {
		s.plain, line, err = startChild(self, "plain", dir)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	s.plain.url, s.plain.tls = strings.TrimSpace(string(line)), child.tls
	return s, nil
}

func startChild(name string, args ...string) (*server, []byte, error) {
	cmd := exec.CommandContext(context.Background(), name, args...) // #nosec G204 -- our own programs
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	s := &server{cmd: cmd, stdin: stdin}
	if err != nil {
		s.stop()
		return nil, nil, fmt.Errorf("%s did not start: %w", name, err)
	}
	return s, line, nil
}

func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

func (s *servers) stop() {
	s.keyService.stop()
	if s.plain != nil {
		s.plain.stop()
	}
}

func clientTLS(at ready) (map[string]*tls.Config, error) {
	ca, err := os.ReadFile(at.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	configs := map[string]*tls.Config{}
	for name, p := range at.Principals {
		pair, err := tls.LoadX509KeyPair(p.Certificate, p.Key)
		if err != nil {
			return nil, err
		}
		configs[name] = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	}
	return configs, nil
}

// servePlain answers /N with N bytes, under the same TLS and after reading the request, until standard input ends.
func servePlain(dir string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem")) // #nosec G304 G703 -- the folder of this benchmark
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the process
	if err != nil {
		return err
	}
	h := &http.Server{
		Handler: http.HandlerFunc(plain), ReadHeaderTimeout: deadline,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		},
	}
	fmt.Println("https://" + listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = h.Close()
	}()
	if err := h.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func plain(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || size < 0 || size > 1<<20 {
		http.Error(w, "no such size", http.StatusNotFound)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(bytes.Repeat([]byte{'x'}, size))
}

// prepare makes the keys of a case; it gives the request's body and the size of the answer.
func (s *servers) prepare(c testCase) (body []byte, size int, err error) {
	const topic = `{"topic":"bench"`
	var first struct{ Kid string }
	answer, err := s.keyService.once("producer", "/v1/encryption-key", []byte(topic+"}"))
	if err == nil {
		err = json.Unmarshal(answer, &first)
	}
	if err != nil {
		return nil, 0, err
	}
	body = []byte(topic + "}")
	if c.kids > 0 {
		kids := []string{`"` + first.Kid + `"`}
		for len(kids) < c.kids {
			answer, err := s.keyService.once("operator", "/v1/scopes/bench/rotate", nil)
			if err == nil {
				err = json.Unmarshal(answer, &first)
			}
			if err != nil {
				return nil, 0, err
			}
			kids = append(kids, `"`+first.Kid+`"`)
		}
		body = []byte(topic + `,"kids":[` + strings.Join(kids, ",") + "]}")
	}
	answer, err = s.keyService.once(c.principal, c.path, body)
	return body, len(answer), err
}

func (s *server) once(principal, path string, body []byte) ([]byte, error) {
	c := s.client(principal)
	defer c.CloseIdleConnections()
	return s.post(c, path, body)
}

// client has one connection.
func (s *server) client(principal string) *http.Client {
	transport := &http.Transport{TLSClientConfig: s.tls[principal].Clone(), ForceAttemptHTTP2: true, MaxConnsPerHost: 1}
	return &http.Client{Transport: transport, Timeout: deadline}
}

func (s *server) post(c *http.Client, path string, body []byte) ([]byte, error) {
	response, err := c.Post(s.url+path, "application/json", bytes.NewReader(body)) //nolint:noctx // the client has a deadline
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return answer, err
}

// call makes calls over the case's connections, which are opened before the clock starts.
func (s *server) call(c testCase, path string, body []byte, calls int) (time.Duration, error) {
	clients := make([]*http.Client, c.connections)
	defer func() {
		for _, one := range clients {
			if one != nil {
				one.CloseIdleConnections()
			}
		}
	}()
	for i := range clients {
		clients[i] = s.client(c.principal)
		if _, err := s.post(clients[i], path, body); err != nil {
			return 0, err
		}
	}
	failures := make(chan error, c.connections)
	var wait sync.WaitGroup
	start := time.Now()
	for _, one := range clients {
		wait.Go(func() {
			for range max(1, calls/c.connections) {
				if _, err := s.post(one, path, body); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(start)
	select {
	case err := <-failures:
		return 0, err
	default:
		return took, nil
	}
}

// cpu gives the CPU time of the child so far, user and system, in ticks of 10 ms.
func (s *server) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	const userField, ticks = 11, 10 * time.Millisecond
	if len(fields) < userField+2 {
		return 0, errors.New("/proc/PID/stat is cut short")
	}
	user, userErr := strconv.Atoi(fields[userField])
	system, systemErr := strconv.Atoi(fields[userField+1])
	return time.Duration(user+system) * ticks, errors.Join(userErr, systemErr)
}
