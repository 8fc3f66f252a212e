// Figures for Prometheus. Labels that come from clients are bounded.

package access

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/metrics"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

const (
	prefix    = "cipherlane_sidecar_"
	maxLabels = 500   // different principals, and different names; those that come later are one
	maxPairs  = 2_000 // of a principal and a name; the names of those that come later are one
)

// Metrics counts what passes. Safe for concurrent use.
type Metrics struct {
	requests, uses, records, bytes, refusals *prometheus.CounterVec
	registry                                 prometheus.Registerer
	principals, names                        *metrics.Bounded[string]
	pairs                                    *metrics.Bounded[[2]string]
}

// NewMetrics adds the figures to a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	m := &Metrics{
		requests: counter("requests_total", "Requests that were looked into.", "principal", "api"),
		uses:     counter("uses_total", "Requests by what they did with which topic, group or transactional id.", "principal", "action", "name"),
		records:  counter("records_total", "Records written (write) and read (read).", "principal", "action", "topic"),
		bytes:    counter("record_bytes_total", "Bytes of record batches written and read.", "principal", "action", "topic"),
		refusals: counter("denials_total", "What was refused, by the code of the refusal.", "principal", "action", "name", "code"),
		registry: registry, principals: metrics.NewBounded[string](maxLabels), names: metrics.NewBounded[string](maxLabels),
		pairs: metrics.NewBounded[[2]string](maxPairs),
	}
	registry.MustRegister(m.requests, m.uses, m.records, m.bytes, m.refusals)
	return m
}

// labels gives those of a principal and of the name of something that it uses.
func (m *Metrics) labels(principal, name string) (string, string) {
	principal, name = metrics.Label(m.principals, principal), metrics.Label(m.names, name)
	if !m.pairs.Takes([2]string{principal, name}) {
		return principal, metrics.Others
	}
	return principal, name
}

func (m *Metrics) requested(principal string, key int16, checks []Check) {
	m.requests.WithLabelValues(metrics.Label(m.principals, principal), kmsg.NameForKey(key)).Inc()
	for _, c := range checks {
		principal, name := m.labels(principal, c.Name)
		m.uses.WithLabelValues(principal, string(c.Action), name).Inc()
	}
}

func (m *Metrics) moved(principal string, action policy.Action, topic string, records, bytes int64) {
	principal, topic = m.labels(principal, topic)
	m.records.WithLabelValues(principal, string(action), topic).Add(float64(records))
	m.bytes.WithLabelValues(principal, string(action), topic).Add(float64(bytes))
}

func (m *Metrics) denied(principal string, c Check, code string) {
	principal, name := m.labels(principal, c.Name)
	m.refusals.WithLabelValues(principal, string(c.Action), name, code).Inc()
}

// watch adds what is asked of the journal when it is read.
func (m *Metrics) watch(j *Journal) { m.registry.MustRegister(&remaining{j}) }

var (
	leaseLeft = prometheus.NewDesc(prefix+"lease_seconds", "Seconds until the lease of what is used now ends; the least, of several.", []string{"principal", "action", "name"}, nil)
	certLeft  = prometheus.NewDesc(prefix+"client_certificate_seconds", "Seconds until a connected client's certificate ends; the least, of several.", []string{"principal"}, nil)
)

// remaining implements prometheus.Collector.
type remaining struct{ journal *Journal }

// Describe implements prometheus.Collector.
func (*remaining) Describe(out chan<- *prometheus.Desc) { out <- leaseLeft; out <- certLeft }

// Collect implements prometheus.Collector.
func (r *remaining) Collect(out chan<- prometheus.Metric) {
	m := r.journal.metrics
	leases, certificates := map[[3]string]float64{}, map[string]float64{}
	for _, c := range r.journal.connections() {
		if !c.ends.IsZero() {
			least(certificates, metrics.Label(m.principals, c.subject.Principal), time.Until(c.ends).Seconds())
		}
		for check := range c.snapshot() {
			principal, name := m.labels(c.subject.Principal, check.Name)
			least(leases, [3]string{principal, string(check.Action), name}, c.holder.left(check).Seconds())
		}
	}
	for k, left := range leases {
		out <- prometheus.MustNewConstMetric(leaseLeft, prometheus.GaugeValue, left, k[0], k[1], k[2])
	}
	for principal, left := range certificates {
		out <- prometheus.MustNewConstMetric(certLeft, prometheus.GaugeValue, left, principal)
	}
}

func least[K comparable](values map[K]float64, key K, value float64) {
	if old, there := values[key]; !there || value < old {
		values[key] = value
	}
}
