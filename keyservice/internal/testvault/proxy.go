// A proxy in front of a real Vault that counts requests and lets a test answer some of them.

package testvault

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands between the store and Vault.
type Proxy struct {
	Address string

	mu       sync.Mutex
	requests []string
	headers  []http.Header
	spent    map[string]time.Duration
	fault    func(w http.ResponseWriter, r *http.Request) bool
}

// NewProxy starts a proxy in front of a server without TLS.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	target, err := url.Parse(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	p := &Proxy{spent: map[string]time.Duration{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := p.note(r); fault != nil && fault(w, r) {
			return
		}
		began := time.Now()
		forward.ServeHTTP(w, r)
		p.took(r, time.Since(began))
	}))
	t.Cleanup(server.Close)
	p.Address = server.URL
	return p
}

func (p *Proxy) note(r *http.Request) func(http.ResponseWriter, *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r.Method+" "+r.URL.Path)
	p.headers = append(p.headers, r.Header.Clone())
	return p.fault
}

func (p *Proxy) took(r *http.Request, d time.Duration) {
	mount, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent[mount] += d
}

// Spent gives the time that Vault took for its answers until now, by mount.
func (p *Proxy) Spent() map[string]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.spent)
}

// Fault lets a function answer requests: it returns true when it did. nil ends that.
func (p *Proxy) Fault(fault func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// Take gives the requests since the last call.
func (p *Proxy) Take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.requests
	p.requests, p.headers = nil, nil
	return taken
}

// Headers gives the headers of the requests since the last Take.
func (p *Proxy) Headers() []http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.headers
}
