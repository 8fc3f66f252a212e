// Package metrics counts what the key service does, for Prometheus. No label comes from a caller unchecked.
package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const prefix = "cipherlane_keyservice_"

// Metrics implements service.Meter and what the API and the server count. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	released  *prometheus.CounterVec
	refused   *prometheus.CounterVec
	records   *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	inFlight  prometheus.Gauge
	audit     prometheus.Histogram
	auditFail prometheus.Counter
	reloads   *prometheus.CounterVec
	throttled *prometheus.CounterVec
	scopes    *Bounded[string]
}

// New makes a registry of its own, with the Go runtime and the process beside our own figures.
func New() *Metrics {
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		scopes:    NewBounded[string](maxScopes),
		requests:  counter("requests_total", "Calls answered, by call and code (ok, or the code of the refusal).", "call", "code"),
		released:  counter("keys_released_total", "Data keys given out.", "action", "scope"),
		refused:   counter("kids_refused_total", "Kids refused inside an answer.", "code"),
		records:   counter("encrypted_records_total", "Records that clients report as encrypted.", "scope"),
		bytes:     counter("encrypted_plaintext_bytes_total", "Plaintext bytes that clients report as encrypted.", "scope"),
		throttled: counter("throttled_total", "Calls refused for want of room: too many at once (in_flight), or too many of a principal.", "reason"),
		reloads:   counter("policy_reloads_total", "Reloads of the policy file, by result (ok, invalid).", "result"),
		inFlight:  prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "in_flight", Help: "Calls that are being answered."}),
		auditFail: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "audit_failures_total", Help: "Audit records that did not reach the disk in time."}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "request_seconds", Help: "Time to answer a call.", Buckets: buckets(),
		}, []string{"call"}),
		audit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "audit_seconds", Help: "Time until an audit record was on disk.", Buckets: buckets(),
		}),
	}
	m.registry.MustRegister(m.requests, m.inFlight, m.seconds, m.released, m.refused, m.records, m.bytes, m.audit, m.auditFail, m.reloads, m.throttled,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
}

// buckets reach from 100 microseconds to some 3 seconds.
func buckets() []float64 { return prometheus.ExponentialBuckets(0.0001, 2, 16) }

// Handler serves the figures.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// Began counts a call that is to be answered.
func (m *Metrics) Began() { m.inFlight.Inc() }

// Answered counts a call. code is empty for success.
func (m *Metrics) Answered(call string, code refusal.Code, took time.Duration) {
	if code == "" {
		code = "ok"
	}
	m.inFlight.Dec()
	m.requests.WithLabelValues(call, string(code)).Inc()
	m.seconds.WithLabelValues(call).Observe(took.Seconds())
}

// Released implements service.Meter.
func (m *Metrics) Released(action policy.Action, scope string, keys int) {
	m.released.WithLabelValues(string(action), Label(m.scopes, scope)).Add(float64(keys))
}

// KidRefused implements service.Meter.
func (m *Metrics) KidRefused(code refusal.Code) { m.refused.WithLabelValues(string(code)).Inc() }

// Encrypted implements service.Meter.
func (m *Metrics) Encrypted(scope string, records, bytes int64) {
	scope = Label(m.scopes, scope)
	m.records.WithLabelValues(scope).Add(float64(records))
	m.bytes.WithLabelValues(scope).Add(float64(bytes))
}

// AuditTook implements service.Meter.
func (m *Metrics) AuditTook(d time.Duration, err error) {
	if err != nil {
		m.auditFail.Inc()
		return
	}
	m.audit.Observe(d.Seconds())
}

// Throttled implements api.Meter.
func (m *Metrics) Throttled(reason string) { m.throttled.WithLabelValues(reason).Inc() }

// Reloaded counts a reload of the policy.
func (m *Metrics) Reloaded(err error) {
	result := "ok"
	if err != nil {
		result = "invalid"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// WatchKeys adds the age of every scope's current key, read from the store when the figures are asked for.
func (m *Metrics) WatchKeys(s store.Store) { m.registry.MustRegister(&keyAges{s}) }

// WatchAudit adds how many lines the audit log's chain has. Kept by a monitoring system, it is an anchor: lines that vanish later make
// it go back.
func (m *Metrics) WatchAudit(log interface{ Head() audit.Head }) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: prefix + "audit_lines_total", Help: "Place of the last line in the audit log's chain.",
	}, func() float64 { return float64(log.Head().Seq) }))
}

var keyAge = prometheus.NewDesc(prefix+"current_key_age_seconds", "Age of the current data key of a scope.", []string{"scope"}, nil)

type keyAges struct{ store store.Store }

func (k *keyAges) Describe(out chan<- *prometheus.Desc) { out <- keyAge }

func (k *keyAges) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	currents, err := k.store.Currents(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(keyAge, err)
		return
	}
	for _, r := range currents[:min(len(currents), maxScopes)] {
		out <- prometheus.MustNewConstMetric(keyAge, prometheus.GaugeValue, time.Since(r.Created).Seconds(), r.Scope)
	}
}
