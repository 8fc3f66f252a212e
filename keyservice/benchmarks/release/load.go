// The clients: keep-alive connections that call as fast as they are answered.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

// deadline bounds every single call.
const deadline = 30 * time.Second

// load is a kind of call, and how many at once.
type load struct {
	principal   string
	path        string
	body        []byte
	connections int
	calls       int
	http1       bool // else HTTP/2
}

// measured is what one run of a load came to.
type measured struct {
	wall  time.Duration
	cpu   time.Duration // of the server
	calls int
	times []time.Duration // sorted
	again int             // calls that were made again, because the disk did not take the audit record in time
}

func (m measured) wallEach() float64 { return micros(m.wall) / float64(m.calls) }
func (m measured) cpuEach() float64  { return micros(m.cpu) / float64(m.calls) }
func (m measured) rate() float64     { return float64(m.calls) / m.wall.Seconds() }

// percentile gives milliseconds.
func (m measured) percentile(p float64) float64 {
	return micros(m.times[int(float64(len(m.times)-1)*p)]) / 1000
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// client has one connection.
func (s *server) client(principal string, http1 bool) *http.Client {
	cfg := s.tls[principal].Clone()
	if http1 {
		cfg.NextProtos = []string{"http/1.1"}
	}
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: !http1, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1}
	return &http.Client{Transport: transport, Timeout: deadline}
}

func (s *server) once(principal, path string, body []byte) []byte {
	c := s.client(principal, false)
	defer c.CloseIdleConnections()
	return rig.Must(s.post(c, path, body))
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

// connect opens the load's connections; close closes them.
func (s *server) connect(l load) (clients []*http.Client, closeAll func()) {
	clients = make([]*http.Client, l.connections)
	for i := range clients {
		clients[i] = s.client(l.principal, l.http1)
		rig.Must(s.post(clients[i], l.path, l.body))
	}
	return clients, func() {
		for _, one := range clients {
			one.CloseIdleConnections()
		}
	}
}

// apply makes the calls over connections that were opened before the clock starts. A single failure fails all.
func (s *server) apply(l load) measured {
	clients, closeAll := s.connect(l)
	defer closeAll()
	each := max(1, l.calls/l.connections)
	callers, failures := make([]caller, l.connections), make([]error, l.connections)
	var wait sync.WaitGroup
	cpu, start := s.cpu(), time.Now()
	for i, one := range clients {
		callers[i] = caller{server: s, client: one, load: l}
		wait.Go(func() { failures[i] = callers[i].repeat(each) })
	}
	wait.Wait()
	m := measured{wall: time.Since(start), cpu: s.cpu() - cpu, calls: each * l.connections}
	rig.Check(errors.Join(failures...))
	for _, c := range callers {
		m.times, m.again = append(m.times, c.times...), m.again+c.again
	}
	slices.Sort(m.times)
	return m
}

// caller is one connection under load.
type caller struct {
	server *server
	client *http.Client
	load   load
	times  []time.Duration
	again  int
}

func (c *caller) repeat(calls int) error {
	c.times = make([]time.Duration, 0, calls)
	for range calls {
		began := time.Now()
		if err := c.call(); err != nil {
			return err
		}
		c.times = append(c.times, time.Since(began))
	}
	return nil
}

// call asks again when the service refused for want of its audit log, as an SDK does; the time of both counts.
func (c *caller) call() error {
	const attempts = 10
	var err error
	for range attempts {
		_, err = c.server.post(c.client, c.load.path, c.load.body)
		if err == nil || !strings.Contains(err.Error(), "audit-unavailable") {
			return err
		}
		c.again++
	}
	return err
}
