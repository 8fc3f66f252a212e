// What is counted of connections; what is counted of topics and groups is the handlers'.

package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics implements gateway.Observer.
type metrics struct {
	registry *prometheus.Registry
	open     *prometheus.GaugeVec
	opened   *prometheus.CounterVec
	ended    *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cipherlane_sidecar_connections", Help: "Connections that are open.",
		}, []string{"listener"}),
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cipherlane_sidecar_connections_opened_total", Help: "Connections that were opened.",
		}, []string{"listener"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cipherlane_sidecar_connections_ended_total", Help: "Connections that have ended, by the reason.",
		}, []string{"listener", "reason"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cipherlane_sidecar_connections_refused_total", Help: "Connections that were refused, by the reason.",
		}, []string{"listener", "reason"}),
	}
	m.registry.MustRegister(m.open, m.opened, m.ended, m.refused, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch adds what is asked of the server when it is read.
func (m *metrics) watch(s *Server) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cipherlane_sidecar_certificate_seconds", Help: "Time until the sidecar's certificate ends.",
	}, func() float64 { return time.Until(s.trust.Ends()).Seconds() }))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cipherlane_sidecar_brokers", Help: "Brokers that have a listener here.",
	}, func() float64 { return float64(s.book.Count()) }))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Opened implements gateway.Observer.
func (m *metrics) Opened(listener string) {
	m.open.WithLabelValues(listener).Inc()
	m.opened.WithLabelValues(listener).Inc()
}

// Ended implements gateway.Observer.
func (m *metrics) Ended(listener, reason string) {
	m.open.WithLabelValues(listener).Dec()
	m.ended.WithLabelValues(listener, reason).Inc()
}

// Refused implements gateway.Observer.
func (m *metrics) Refused(listener, reason string) { m.refused.WithLabelValues(listener, reason).Inc() }
