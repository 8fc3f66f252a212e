package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

func figures(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

// A caller that may name any topic makes no more than so many series.
func TestLabelsAreBounded(t *testing.T) {
	m := New()
	for i := range 3 * maxScopes {
		m.Released(policy.ActionEncrypt, fmt.Sprintf("scope-%d", i), 1)
		m.Encrypted(fmt.Sprintf("scope-%d", i), 1, 10)
	}
	m.Released(policy.ActionEncrypt, "scope-1", 1)
	text := figures(t, m)
	if n := strings.Count(text, prefix+"keys_released_total{"); n != maxScopes+1 {
		t.Errorf("%d series", n)
	}
	for _, want := range []string{`scope="scope-1"} 2`, `scope="(others)"} 2000`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestDependencies(t *testing.T) {
	m := New()
	count := m.VaultCalls()
	for _, status := range []int{0, 200, 204, 302, 400, 403, 404, 405, 412, 429, 472, 473, 500, 503, 599} {
		count("transit/decrypt", status, time.Millisecond)
	}
	m.WatchCache(func() Cached { return Cached{Hits: 7, Misses: 3, Held: 2} })
	m.WatchCertificate("server", time.Now().Add(time.Hour))
	text := figures(t, m)
	for _, want := range []string{
		`vault_requests_total{operation="transit/decrypt",status="2xx"} 2`, `status="none"} 1`, `status="403"} 1`, `status="4xx"} 1`, `status="5xx"} 2`,
		`vault_seconds_count{operation="transit/decrypt"} 15`, "key_cache_hits_total 7", "key_cache_misses_total 3", "key_cache_keys 2",
		`certificate_seconds_left{use="server"} 359`,
	} {
		if !strings.Contains(text, prefix+want) && !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}
