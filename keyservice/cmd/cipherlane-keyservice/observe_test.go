// What an operator watches: metrics, the dashboard drawn from them, traces.

package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

var metricName = regexp.MustCompile(`cipherlane_keyservice_[a-z_]+|process_[a-z_]+|go_[a-z_]+`)

// Each metric of the dashboard and of the alerts is one that the service has, on Vault, after a call and a refusal.
func TestDashboard(t *testing.T) {
	server := testvault.Dev(t, true)
	dir := folderOnVault(t, server, server.NewPlace(t))
	if out, err := program(t, "init", "--config", filepath.Join(dir, "keyservice.yaml")).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	k := startIn(t, dir)
	kid := k.encryptionKey(t, "claims").text("kid")
	k.decrypt(t, "claims", kid, strings.Repeat("0", 32))
	k.post(t, "producer", "/v1/encryption-key", fmt.Sprintf(`{"topic":"claims","usage":{"kid":%q,"records":1,"bytes":2}}`, kid))
	k.post(t, "stranger", "/v1/encryption-key", `{"topic":"claims"}`)
	k.get(t, "/readyz")
	figures := k.get(t, "/metrics")
	for _, path := range []string{"grafana-dashboard.json", "prometheus-alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "deploy", "monitoring", path))
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(text), -1)
		if len(names) < 5 {
			t.Errorf("%s names %d metrics", path, len(names))
		}
		for _, name := range names {
			// Series with labels that did not occur yet are announced by no line; those have a counter that is made at first use.
			if !strings.Contains(figures, "\n"+name+"{") && !strings.Contains(figures, "\n"+name+" ") && !madeAtFirstUse[name] {
				t.Errorf("%s: the service has no metric %s", path, name)
			}
		}
	}
	for name := range madeAtFirstUse {
		source, err := os.ReadFile(filepath.Join("..", "..", "internal", "metrics", "metrics.go"))
		if err != nil || !strings.Contains(string(source), `"`+strings.TrimPrefix(name, "cipherlane_keyservice_")+`"`) {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// madeAtFirstUse are counters that this test gives no reason to count.
var madeAtFirstUse = map[string]bool{"cipherlane_keyservice_throttled_total": true, "cipherlane_keyservice_policy_reloads_total": true}

// Each panel asks something, and no two stand on the same place.
func TestDashboardPanels(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "deploy", "monitoring", "grafana-dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil || len(board.Panels) < 8 {
		t.Fatal(err, len(board.Panels))
	}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		if p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 {
			t.Errorf("%+v", p)
		}
		for _, target := range p.Targets {
			if !metricName.MatchString(target.Expr) {
				t.Errorf("%s: %q", p.Title, target.Expr)
			}
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, there := taken[[2]int{x, y}]; there {
					t.Errorf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

func TestCertificateLifeIsMeasured(t *testing.T) {
	k := start(t)
	found := regexp.MustCompile(`certificate_seconds_left\{use="server"\} ([0-9.e+]+)`).FindStringSubmatch(k.get(t, "/metrics"))
	if found == nil {
		t.Fatal("not there")
	}
	var seconds float64
	if _, err := fmt.Sscan(found[1], &seconds); err != nil || seconds < 89*86400 || seconds > 91*86400 {
		t.Error(found)
	}
}

// spans collects what is exported.
type spans struct {
	mu    sync.Mutex
	names []string
	all   string
}

func (s *spans) take(t *testing.T, r *http.Request) {
	t.Helper()
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		in = unpacked
	}
	body, err := io.ReadAll(in)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil {
		t.Error(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all += request.String()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.names = append(s.names, span.GetName())
			}
		}
	}
}

func TestTraces(t *testing.T) {
	got := &spans{}
	collecting := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.take(t, r) }))
	defer collecting.Close()
	k := startWith(t, fmt.Sprintf("tracing: {endpoint: %q, one_in: 1}\n", collecting.URL))
	key := k.encryptionKey(t, "claims").text("key")
	k.stop(t) // which sends what is left
	got.mu.Lock()
	defer got.mu.Unlock()
	if len(got.names) != 1 || !strings.Contains(got.all, "cipherlane-keyservice") || !strings.Contains(got.all, "/v1/encryption-key") {
		t.Errorf("%v %s", got.names, got.all)
	}
	if strings.Contains(got.all, key) {
		t.Error("a trace has a key")
	}
}

// A collector that is away costs no call.
func TestTracesWithoutCollector(t *testing.T) {
	k := startWith(t, "tracing: {endpoint: \"http://127.0.0.1:1\", one_in: 1}\n")
	k.encryptionKey(t, "claims")
	k.stop(t)
	if k.err != nil {
		t.Error(k.err)
	}
}
