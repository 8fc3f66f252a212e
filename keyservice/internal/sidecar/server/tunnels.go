// Tunnels, where they are configured, and what is counted of them.

package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/gateway"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/tunnel"
)

// takenProtocol is what is chosen with clients that offer it; nothing where no tunnels are taken.
func (s *Server) takenProtocol() string {
	if s.cfg.Tunnels == nil || s.cfg.Side != config.Broker {
		return ""
	}
	return tunnel.Protocol
}

func (s *Server) tunnels() *gateway.Tunnels {
	t := s.cfg.Tunnels
	if t == nil {
		return nil
	}
	m := newTunnelMetrics(s.metrics.registry)
	return &gateway.Tunnels{
		Options:  tunnel.Options{Streams: t.Streams, Stall: s.cfg.Limits.Stall, Observer: m},
		Observer: m, Connections: t.Connections, OwnBytes: t.OwnBytes, OwnWithin: t.OwnWithin, Refuse: t.Unsupported == config.Refuse,
	}
}

// tunnelMetrics implements tunnel.Observer and gateway.TunnelObserver.
type tunnelMetrics struct {
	open, streams         prometheus.Gauge
	opened, streamsOpened prometheus.Counter
	bytes, own            *prometheus.CounterVec
	in, out               prometheus.Counter
}

func newTunnelMetrics(registry *prometheus.Registry) *tunnelMetrics {
	m := &tunnelMetrics{
		open:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "cipherlane_sidecar_tunnels", Help: "TLS connections to other sidecars that carry streams."}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "cipherlane_sidecar_tunnel_streams", Help: "Connections that go through tunnels."}),
		opened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cipherlane_sidecar_tunnels_opened_total", Help: "TLS connections that carry streams and were opened.",
		}),
		streamsOpened: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cipherlane_sidecar_tunnel_streams_opened_total", Help: "Connections that went through tunnels.",
		}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cipherlane_sidecar_tunnel_bytes_total", Help: "Bytes of streams that came from tunnels and went into them.",
		}, []string{"direction"}),
		own: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cipherlane_sidecar_tunnel_own_total", Help: "Connections that had TLS for themselves though there are tunnels, by the reason.",
		}, []string{"reason"}),
	}
	m.in, m.out = m.bytes.WithLabelValues("in"), m.bytes.WithLabelValues("out")
	registry.MustRegister(m.open, m.streams, m.opened, m.streamsOpened, m.bytes, m.own)
	return m
}

// TunnelOpened implements tunnel.Observer, as all but Own.
func (m *tunnelMetrics) TunnelOpened() {
	m.open.Inc()
	m.opened.Inc()
}

// TunnelEnded counts.
func (m *tunnelMetrics) TunnelEnded() { m.open.Dec() }

// StreamOpened counts.
func (m *tunnelMetrics) StreamOpened() {
	m.streams.Inc()
	m.streamsOpened.Inc()
}

// StreamEnded counts.
func (m *tunnelMetrics) StreamEnded() { m.streams.Dec() }

// Moved counts.
func (m *tunnelMetrics) Moved(in, out int) {
	m.in.Add(float64(in))
	m.out.Add(float64(out))
}

// Own implements gateway.TunnelObserver.
func (m *tunnelMetrics) Own(reason string) { m.own.WithLabelValues(reason).Inc() }
