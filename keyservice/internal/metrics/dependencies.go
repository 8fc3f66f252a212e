// What the service depends on: Vault, the cache before it, certificates.

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// VaultCalls makes the figures of a Vault store and gives the function that counts a call. operation is one of few words; status is
// the HTTP status, or 0 where no answer came.
func (m *Metrics) VaultCalls() func(operation string, status int, took time.Duration) {
	calls := counter("vault_requests_total", "Requests to Vault, by operation and status (none: no answer came).", "operation", "status")
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "vault_seconds", Help: "Time until Vault answered a request.", Buckets: buckets(),
	}, []string{"operation"})
	m.registry.MustRegister(calls, seconds)
	return func(operation string, status int, took time.Duration) {
		calls.WithLabelValues(operation, statusLabel(status)).Inc()
		seconds.WithLabelValues(operation).Observe(took.Seconds())
	}
}

// statusLabel gives classes for what Vault may answer: told apart where it matters to an operator.
func statusLabel(status int) string {
	switch status {
	case 0:
		return "none"
	case 400, 403, 404, 412, 429, 472, 473, 503:
		return map[int]string{400: "400", 403: "403", 404: "404", 412: "412", 429: "429", 472: "472", 473: "473", 503: "503"}[status]
	}
	switch status / 100 {
	case 2:
		return "2xx"
	case 3:
		return "3xx"
	case 4:
		return "4xx"
	default:
		return "5xx"
	}
}

// Cached are the figures of a cache of unwrapped keys.
type Cached struct {
	Hits, Misses uint64
	Held         int
}

// WatchCache adds a cache, read when the figures are asked for.
func (m *Metrics) WatchCache(read func() Cached) {
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + "key_cache_hits_total", Help: "Unwrapped keys found in memory."},
			func() float64 { return float64(read().Hits) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + "key_cache_misses_total", Help: "Unwrapped keys not found in memory."},
			func() float64 { return float64(read().Misses) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "key_cache_keys", Help: "Unwrapped keys in memory."},
			func() float64 { return float64(read().Held) }),
	)
}

// WatchCertificate adds the seconds until a certificate ends; below zero it has ended. use is what it is for.
func (m *Metrics) WatchCertificate(use string, end time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "certificate_seconds_left", Help: "Seconds until a certificate of the service ends.", ConstLabels: prometheus.Labels{"use": use},
	}, func() float64 { return time.Until(end).Seconds() }))
}
