// Where the CPU time of a release goes: the service's own code in a child that profiles itself.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
	"github.com/cipherlane/cipherlane/keyservice/internal/dev"
	service "github.com/cipherlane/cipherlane/keyservice/internal/server"
)

// share is a part of the work, told by what stands anywhere in a sample's stack.
type share struct {
	name   string
	marks  []string
	system bool // only samples within a system call
}

const module = "cipherlane/keyservice/internal/"

// shares are tried in this order: the first that matches takes the sample.
var shares = []share{
	{name: "garbage_collection", marks: []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}},
	{name: "audit", marks: []string{module + "audit."}},
	{name: "policy", marks: []string{module + "policy."}},
	{name: "store_and_unwrap", marks: []string{module + "store/", module + "datakey."}},
	{name: "metrics_and_log", marks: []string{"prometheus/client_golang", "log/slog."}},
	{name: "json", marks: []string{"go-json-experiment/json"}},
	{name: "network_system_calls", marks: []string{"internal/poll.(*FD)", "runtime.netpoll"}, system: true},
	{name: "tls", marks: []string{"crypto/tls.", "crypto/internal/", "crypto/x509."}},
	{name: "http", marks: []string{"net/http.", "net/http/internal", "net/textproto.", "golang.org/x/net/"}},
	{name: "scheduler", marks: []string{"runtime.schedule", "runtime.mcall", "runtime.park_m", "runtime.goexit0", "runtime.sysmon", "runtime.mstart"}},
}

// measureShares says how many microseconds of CPU time each part of the service takes for a release.
func measureShares(b *bench) {
	dir, out := b.folder(embedded), b.TempDir()+"/cpu.pprof"
	child, line := b.startChild(self(), "profiled", dir, out)
	child.ready(line)
	c := releaseCases[1]
	c.load.body = child.requestFor(0)
	c.load.calls *= runs
	m := child.apply(c.load)
	child.stop()
	parts := split(rig.Must(profile.ParseData(rig.Must(os.ReadFile(out))))) // #nosec G304 -- a file of this benchmark
	total := 0.0
	for _, part := range parts {
		total += part
	}
	one := rig.Series{m.cpuEach()}.Row("cpu/"+c.name, "cipherlane", "server_cpu_us_per_request")
	one.Figures = map[string]float64{}
	for name, part := range parts {
		one.Figures[name] = rig.Round(m.cpuEach() * part / total)
	}
	b.report.Add(one)
}

// split gives the CPU time of each share.
func split(p *profile.Profile) map[string]float64 {
	parts := map[string]float64{}
	for _, sample := range p.Sample {
		parts[shareOf(functions(sample))] += float64(sample.Value[len(sample.Value)-1])
	}
	return parts
}

// functions gives the names of a sample's stack, the innermost first, one in a line.
func functions(sample *profile.Sample) string {
	var names strings.Builder
	for _, location := range sample.Location {
		for _, line := range location.Line {
			if line.Function != nil {
				names.WriteString(line.Function.Name + "\n")
			}
		}
	}
	return names.String()
}

func shareOf(stack string) string {
	system := strings.Contains(stack, "Syscall6") || strings.Contains(stack, "runtime.epoll")
	for _, s := range shares {
		for _, mark := range s.marks {
			if strings.Contains(stack, mark) && (system || !s.system) {
				return s.name
			}
		}
	}
	return "other"
}

// serveProfiled serves a folder of the dev command until standard input ends, and then writes a profile.
func serveProfiled(dir, out string) error {
	folder, cfg, err := dev.Prepare(dev.Options{Dir: dir})
	if err != nil {
		return err
	}
	cfg.Listen, cfg.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	opened, err := service.Open(cfg, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var data bytes.Buffer
	if err := pprof.StartCPUProfile(&data); err != nil {
		cancel()
		return err
	}
	at := opened.Addresses()
	if err := dev.NewRunning(folder, at.API, at.Admin).WriteJSON(os.Stdout); err != nil {
		cancel()
		return err
	}
	if err := opened.Run(ctx, nil); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	pprof.StopCPUProfile()
	return os.WriteFile(out, data.Bytes(), 0o600) // #nosec G703 -- a file of this benchmark
}
