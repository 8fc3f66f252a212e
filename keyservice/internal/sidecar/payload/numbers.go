// Numbers of spec/kafka.md, for Prometheus.

package payload

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
)

const prefix = "cipherlane_sidecar_payload_"

type numbers struct {
	encrypted, decrypted, skipped, marked, plaintext prometheus.Counter
	failures                                         *prometheus.CounterVec
}

func newNumbers(to prometheus.Registerer, cache *keys.Cache, requests, responses *memory) (*numbers, error) {
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
		all = append(all, c)
		return c
	}
	n := &numbers{
		encrypted: counter("records_encrypted_total", "Records encrypted."),
		decrypted: counter("records_decrypted_total", "Records decrypted."),
		skipped:   counter("skipped_total", "Records left out because they will never be readable."),
		marked:    counter("marked_total", "Records handed over as ciphertext, with a header that says so."),
		plaintext: counter("plaintext_accepted_total", "Records read in the clear because the policy accepts plaintext."),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "failures_total", Help: "Partitions of requests, and records, that ended in an error, by code.",
		}, []string{"code"}),
	}
	all = append(all, requests.collectors("request")...)
	all = append(all, responses.collectors("response")...)
	all = append(all, n.failures, ofCache("key_requests_total", "Calls to the key service.", cache, func(c keys.Counts) float64 { return float64(c.Requests) }),
		ofCache("key_request_failures_total", "Calls to the key service that failed.", cache, func(c keys.Counts) float64 { return float64(c.Failures) }),
		ofCache("keys_cached", "Data keys held now.", cache, func(c keys.Counts) float64 { return float64(c.Cached) }),
		ofCache("lease_seconds_left", "Seconds until the first lease ends.", cache, func(c keys.Counts) float64 { return c.FirstEnd.Seconds() }))
	var err error
	for _, one := range all {
		err = errors.Join(err, to.Register(one))
	}
	return n, err
}

func ofCache(name, help string, cache *keys.Cache, value func(keys.Counts) float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help}, func() float64 { return value(cache.Counts()) })
}

func (m *memory) collectors(direction string) []prometheus.Collector {
	labels := prometheus.Labels{"direction": direction}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: prefix + "memory_bytes", Help: "Memory reserved for what is made of messages, by direction.", ConstLabels: labels,
		}, func() float64 { return float64(m.reserved.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: prefix + "memory_waits_total", Help: "Messages that waited for memory, by direction.", ConstLabels: labels,
		}, func() float64 { return float64(m.waits.Load()) }),
	}
}
