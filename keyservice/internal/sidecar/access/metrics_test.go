package access

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// Names that clients bring along do not let the figures grow for ever: those beyond the bound are counted together, and none is lost.
func TestMetricsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	const many = 3 * maxLabels
	for i := range many {
		m.requested(fmt.Sprint("principal-", i), int16(kmsg.Fetch), []Check{{policy.ActionRead, fmt.Sprint("topic-", i)}})
		m.moved(fmt.Sprint("principal-", i), policy.ActionRead, fmt.Sprint("topic-", i), 1, 10)
		m.denied(fmt.Sprint("principal-", i), Check{policy.ActionGroup, fmt.Sprint("group-", i)}, "not-authorized")
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 5 {
		t.Fatal(families, err)
	}
	for _, family := range families {
		total := 0.0
		for _, one := range family.Metric {
			total += one.GetCounter().GetValue()
		}
		if n := len(family.Metric); n != maxLabels+1 {
			t.Errorf("%s has %d series", family.GetName(), n)
		}
		if total != many && total != 10*many {
			t.Errorf("%s counts %v of %d", family.GetName(), total, many)
		}
	}
}

// Nor do all pairs of principals and topics: of those beyond the bound the principal is still told.
func TestPairsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	const principals, topics = 100, 3 * maxPairs / 100
	for i := range principals * topics {
		m.moved(fmt.Sprint("principal-", i%principals), policy.ActionWrite, fmt.Sprint("topic-", i/principals), 1, 1)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 2 {
		t.Fatal(families, err)
	}
	for _, family := range families {
		of := map[string]float64{}
		for _, one := range family.Metric {
			of[one.Label[1].GetValue()] += one.GetCounter().GetValue()
		}
		if n := len(family.Metric); n != maxPairs+principals {
			t.Errorf("%s has %d series", family.GetName(), n)
		}
		for i := range principals {
			if name := fmt.Sprint("principal-", i); of[name] != topics {
				t.Errorf("%s counts %v of %d of %s", family.GetName(), of[name], topics, name)
			}
		}
	}
}
