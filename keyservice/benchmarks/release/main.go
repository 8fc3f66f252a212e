// Command release measures the key service under load: what giving out a key costs beside a plain HTTPS handler of the same size
// of answer under the same mutual TLS; where its CPU time goes; many keys at once, cold and warm, on a real Vault; a thousand clients
// that start at once; and whether memory stays flat. The service, Vault and the load are processes of their own. The last line of
// stdout is one JSON object (the design's section on benchmarks).
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

const (
	runs    = 5
	warmUp  = 2000
	program = "build/bin/cipherlane-keyservice"
)

// group is a set of rows that are measured together.
type group struct {
	name    string
	measure func(b *bench)
}

var groups = []group{
	{"release", measureReleases},
	{"cpu", measureShares},
	{"backlog", measureBacklog},
	{"herd", measureHerd},
	{"memory", measureMemory},
}

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "plain":
		exitOn(servePlain(os.Args[2]))
		return
	case len(os.Args) == 4 && os.Args[1] == "profiled":
		exitOn(serveProfiled(os.Args[2], os.Args[3]))
		return
	}
	only := flag.String("only", "", "groups to measure, separated by commas: release, cpu, backlog, herd, memory; all when empty")
	requests := flag.Int("requests", 1_000_000, "requests of the group memory")
	flag.Parse()
	exitOn(measure(*only, *requests))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// measure runs the groups and prints the report. A promise that was not kept is said loudly and stands in the report; it does not
// fail the run, because a busy machine keeps none about time.
func measure(only string, requests int) error {
	testing.Init() // package testvault is for tests, and asks for this
	out := rig.Report{Benchmark: "keyservice", Unit: "us_per_request", Runs: runs, Machine: rig.ThisMachine()}
	for _, g := range groups {
		if only != "" && !strings.Contains(","+only+",", ","+g.name+",") {
			continue
		}
		if err := within(g, &out, requests); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	out.SayBroken()
	return out.Write()
}

func within(g group, out *rig.Report, requests int) error {
	b := newBench(out, requests)
	defer b.Close()
	return b.Run(func() { g.measure(b) })
}
