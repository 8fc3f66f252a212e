// Giving out keys that are warm, beside the plain handler; and memory over many of them.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

const (
	encryptPath = "/v1/encryption-key"
	decryptPath = "/v1/decryption-keys"
	promiseRate = 4000 // releases in a second
	promiseP99  = 25.0 // milliseconds
)

// releaseCase is one figure.
type releaseCase struct {
	name string
	load load
	kids int
	rate bool // whether the promise is about this one
}

var releaseCases = []releaseCase{
	{name: "encryption-key/32B/1", load: load{principal: "producer", path: encryptPath, connections: 1, calls: 2000}},
	{name: "encryption-key/32B/32", load: load{principal: "producer", path: encryptPath, connections: 32, calls: 20_000}, rate: true},
	{name: "encryption-key-http1/32B/32", load: load{principal: "producer", path: encryptPath, connections: 32, calls: 20_000, http1: true}, rate: true},
	{name: "decryption-keys/32B/32", load: load{principal: "consumer", path: decryptPath, connections: 32, calls: 20_000}, kids: 1, rate: true},
	{name: "decryption-keys/32000B/1", load: load{principal: "consumer", path: decryptPath, connections: 1, calls: 100}, kids: 1000},
}

// measureReleases interleaves the runs of both servers.
func measureReleases(b *bench) {
	dir := b.folder(embedded)
	service := b.startService(dir)
	plain := b.startPlain(dir, service)
	for _, c := range releaseCases {
		c.load.body = service.requestFor(c.kids)
		against := c.load
		against.path = fmt.Sprintf("/%d", len(service.once(c.load.principal, c.load.path, c.load.body)))
		plain.apply(against.warmUp())
		service.apply(c.load.warmUp())
		var baseline, ours []measured
		for range runs {
			baseline = append(baseline, plain.apply(against))
			ours = append(ours, service.apply(c.load))
		}
		c.report(b.report, baseline, ours)
	}
}

func (l load) warmUp() load {
	l.calls = min(l.calls, warmUp)
	return l
}

func (c releaseCase) report(out *rig.Report, baseline, ours []measured) {
	out.Add(rowOf(c.name, "plain-https", baseline))
	one := rowOf(c.name, "cipherlane", ours)
	one.Baseline = "plain-https"
	one.Ratio = each(ours, measured.wallEach).Ratio(each(baseline, measured.wallEach))
	if c.rate {
		one = one.Promised(fmt.Sprintf("at least %d/s with p99 under %.0f ms", promiseRate, promiseP99),
			one.Figures["per_second"] >= promiseRate && one.Figures["p99_ms"] < promiseP99)
	}
	out.Add(one)
}

func each(all []measured, figure func(measured) float64) rig.Series {
	s := make(rig.Series, len(all))
	for i, m := range all {
		s[i] = figure(m)
	}
	return s
}

func rowOf(name, kind string, all []measured) rig.Row {
	one := each(all, measured.wallEach).Row(name, kind, "")
	one.Figures = map[string]float64{
		"server_cpu_us_per_request": rig.Round(each(all, measured.cpuEach).Median()),
		"per_second":                rig.Round(each(all, measured.rate).Median()),
		"p50_ms":                    rig.Round(each(all, func(m measured) float64 { return m.percentile(0.5) }).Median()),
		"p99_ms":                    rig.Round(each(all, func(m measured) float64 { return m.percentile(0.99) }).Median()),
	}
	for _, m := range all {
		if m.again > 0 {
			one.Figures["asked_again"] += float64(m.again)
		}
	}
	return one
}

// requestFor gives the body of a call: for an encryption key, or for as many decryption keys, which it makes.
func (s *server) requestFor(kids int) []byte {
	const topic = `{"topic":"bench"`
	first := kidOf(s.once("producer", encryptPath, []byte(topic+"}")))
	if kids == 0 {
		return []byte(topic + "}")
	}
	all := []string{first}
	for len(all) < kids {
		all = append(all, kidOf(s.once("operator", "/v1/scopes/bench/rotate", nil)))
	}
	return decryptionRequest("bench", all)
}

func kidOf(answer []byte) string {
	var key struct{ Kid string }
	rig.Check(json.Unmarshal(answer, &key))
	return key.Kid
}

func decryptionRequest(topic string, kids []string) []byte {
	return fmt.Appendf(nil, `{"topic":%q,"kids":["%s"]}`, topic, strings.Join(kids, `","`))
}

// measureMemory looks at the service's memory after a tenth of the requests and after all.
func measureMemory(b *bench) {
	service := b.startService(b.folder(embedded))
	l := load{principal: "producer", path: encryptPath, body: service.requestFor(0), connections: 32, calls: b.requests / 10}
	var all, anonymous rig.Series
	again := 0
	for part := range 10 {
		m := service.apply(l)
		again += m.again
		rss, anon := service.memory()
		all, anonymous = append(all, rss), append(anonymous, anon)
		fmt.Fprintf(os.Stderr, "memory: %d requests: %.1f MiB, of it %.1f no file; %.0f/s\n", (part+1)*m.calls, rss, anon, m.rate())
	}
	name, last := fmt.Sprintf("memory/%d", b.requests), len(all)-1
	one := anonymous.Row(name, "cipherlane", "MiB")
	one.Value = anonymous[last]
	one.Figures = map[string]float64{
		fmt.Sprintf("rss_at_%d", b.requests/10): all[0], fmt.Sprintf("rss_at_%d", b.requests): all[last],
		fmt.Sprintf("anonymous_at_%d", b.requests/10): anonymous[0], fmt.Sprintf("anonymous_at_%d", b.requests): anonymous[last],
		"asked_again": float64(again),
	}
	b.report.Add(one.Promised("at most 16 MiB and a quarter more after ten times the requests", anonymous[last] <= anonymous[0]*1.25+16))
}
