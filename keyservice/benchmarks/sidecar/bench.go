// The measuring: rows in turn, each run of each process counted.

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

type bench struct {
	rig.Scope

	report  *rig.Report
	broker  int // process
	logs    []string
	profile string
	rows    []*row
	warm    bool // something was measured before
}

// result is one run.
type result struct {
	client, proxies, broker time.Duration // of CPU
	records, size           int
	load                    outcome
	allocated               float64 // bytes, by our own sidecars
}

func (r result) micros(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / 1000 / float64(r.records)
}

func (r result) cpu() float64 { return r.micros(r.client + r.proxies + r.broker) }

// measureAll measures all sizes with so many clients, which stay connected meanwhile.
func (b *bench) measureAll(connections int, sizes []int) {
	inner := &rig.Scope{}
	defer inner.Close()
	clients := b.startClients(inner, produce, connections)
	warmUps := clientWarmUps
	if !b.warm { // the broker has to compile too, and what it compiles first is not what it ends with
		warmUps += brokerWarmUps
		b.warm = true
	}
	for _, size := range sizes {
		name := fmt.Sprintf("produce/%dB/%dconn", size, connections)
		records := max(volume/(size+perRecord)/connections, 1) * connections
		b.reportCase(name, b.interleaved(name, clients, warmUps, records, size))
		warmUps = sizeWarmUps
	}
}

// startClients gives those of each row.
func (b *bench) startClients(s *rig.Scope, kind string, connections int) map[string]*client {
	clients := map[string]*client{}
	for _, r := range b.rows {
		clients[r.name] = startClient(s, r, kind, connections)
	}
	return clients
}

// interleaved runs each row in turn, all with the same number of records.
func (b *bench) interleaved(name string, clients map[string]*client, warmUps, records, size int, rate ...int) map[string][]result {
	all := map[string][]result{}
	for round := -warmUps; round < runs; round++ {
		order := slices.Clone(b.rows)
		if round%2 != 0 {
			slices.Reverse(order)
		}
		for _, r := range order {
			one := b.once(r, clients[r.name], records, size, rate...)
			if round >= 0 {
				all[r.name] = append(all[r.name], one)
			}
			fmt.Fprintf(os.Stderr, "%-24s %-15s %2d  %7.2f CPU us per record  %9.0f records/s\n", name, r.name, round+1, one.cpu(), float64(records)/one.load.seconds)
		}
	}
	return all
}

func (b *bench) once(r *row, c *client, records, size int, rate ...int) result {
	before := b.counts(r, c)
	one := result{records: records, size: size, load: c.run(records, size, rate...)}
	after := b.counts(r, c)
	one.client, one.proxies, one.broker = after.client-before.client, after.proxies-before.proxies, after.broker-before.broker
	one.allocated = after.allocated - before.allocated
	return one
}

func (b *bench) counts(r *row, c *client) (now result) {
	now.client, now.broker = rig.CPU(c.pid()), rig.CPU(b.broker)
	for _, pid := range r.proxies {
		now.proxies += rig.CPU(pid)
	}
	for _, admin := range r.admins {
		now.allocated += allocatedBy(admin)
	}
	return now
}

func (b *bench) reportCase(name string, all map[string][]result) {
	baseline := seriesOf(all[baselineRow], result.cpu)
	for _, r := range b.rows {
		cpu := seriesOf(all[r.name], result.cpu)
		one := cpu.Row(name, r.name, "")
		one.Figures = b.figures(r, all[r.name])
		compareProxies(one.Figures, r, all)
		if r.name != baselineRow && len(baseline) > 0 {
			one.Baseline, one.Ratio = baselineRow, cpu.Ratio(baseline)
		}
		b.report.Add(one)
	}
}

// compareProxies adds what the proxies of a row take of what those of its peers take, where both were measured.
func compareProxies(figures map[string]float64, r *row, all map[string][]result) {
	proxies := func(one result) float64 { return one.micros(one.proxies) }
	for _, peer := range peerRows {
		if len(r.proxies) > 0 && r.name != peer && len(all[peer]) > 0 {
			figures["proxies_of_"+peer] = rig.Round(seriesOf(all[r.name], proxies).Ratio(seriesOf(all[peer], proxies)))
		}
	}
}

func (b *bench) figures(r *row, all []result) map[string]float64 {
	median := func(figure func(result) float64) float64 { return rig.Round(seriesOf(all, figure).Median()) }
	figures := map[string]float64{
		"client":             median(func(r result) float64 { return r.micros(r.client) }),
		"broker":             median(func(r result) float64 { return r.micros(r.broker) }),
		"records_per_second": median(func(r result) float64 { return float64(r.records) / r.load.seconds }),
		"p50_ms":             median(func(r result) float64 { return r.load.p50 }),
		"p99_ms":             median(func(r result) float64 { return r.load.p99 }),
	}
	figures["cpu_us_per_mb"] = median(func(r result) float64 { return r.cpu() * 1e6 / float64(r.size) })
	if len(r.proxies) > 0 {
		figures["proxies"] = median(func(r result) float64 { return r.micros(r.proxies) })
		for _, pid := range r.proxies {
			_, anonymous := rig.Memory(pid)
			figures["proxies_mib"] += anonymous
			figures["largest_proxy_mib"] = max(figures["largest_proxy_mib"], anonymous)
		}
	}
	if len(r.admins) > 0 {
		figures["allocated_bytes_per_record"] = median(func(r result) float64 { return r.allocated / float64(r.records) })
	}
	return figures
}

// measureLatency sends slowly, from one client.
func (b *bench) measureLatency() {
	inner := &rig.Scope{}
	defer inner.Close()
	const name, size, records = "latency/1024B/1conn", 1024, latencyAt * 3 / 2
	all := b.interleaved(name, b.startClients(inner, pace, 1), sizeWarmUps, records, size, latencyAt)
	p50 := func(r result) float64 { return r.load.p50 }
	for _, r := range b.rows {
		ours := seriesOf(all[r.name], p50)
		one := ours.Row(name, r.name, "p50_ms")
		one.Figures = map[string]float64{
			"p99_ms":              rig.Round(seriesOf(all[r.name], func(r result) float64 { return r.load.p99 }).Median()),
			"cpu_us_per_record":   rig.Round(seriesOf(all[r.name], result.cpu).Median()),
			"records_per_second":  latencyAt,
			"records_of_each_run": records,
		}
		if plain := all[plaintextRow]; len(plain) > 0 {
			one.Figures["added_to_plaintext"] = rig.Round(ours.Median() - seriesOf(plain, p50).Median())
		}
		if r.name != baselineRow {
			one.Baseline, one.Ratio = baselineRow, ours.Ratio(seriesOf(all[baselineRow], p50))
		}
		b.report.Add(one)
	}
}

func seriesOf(all []result, figure func(result) float64) rig.Series {
	s := make(rig.Series, len(all))
	for i, one := range all {
		s[i] = figure(one)
	}
	return s
}

func names() []string { return slices.Sorted(maps.Keys(makers)) }
