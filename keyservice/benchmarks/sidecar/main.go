// Command sidecar measures what carries Kafka's traffic over mutual TLS: CPU microseconds per produced record of every process in the
// path (client, proxies, broker), throughput and latency, for the sidecar and its peers, beside plaintext and the JDK's TLS in client
// and broker. Broker and producers are Kafka's, the producers of a row in one Java machine, each with connections of its own that it
// keeps. Runs are interleaved. The last line of stdout is one JSON object (the design's section on benchmarks).
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

const (
	runs      = 5
	perRecord = 230         // what a record costs besides its bytes, in bytes: so that a run takes as long whatever their size
	volume    = 180_000_000 // what a run sends, in such bytes: most of a second or more on two cores
	latencyAt = 5000        // records a second

	// Rounds that do not count: of new clients, which compile what they run, and where only the size is new. The broker compiles in
	// the first of all.
	clientWarmUps, sizeWarmUps, brokerWarmUps = 6, 1, 4
)

// choice is what the command line asks for.
type choice struct {
	sizes, connections []int
	rows               []string // empty: all
	latency            bool
	profile            string
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "profiled" {
		exitOn(runProfiled(os.Args[2], os.Args[3]))
		return
	}
	sizes := flag.String("size", "128,1024,8192", "bytes of a value, separated by commas")
	connections := flag.String("connections", "1,64,512", "clients, separated by commas")
	rows := flag.String("row", "", "rows besides the baseline, separated by commas; all when empty")
	latency := flag.Bool("latency", true, "also latency at 5,000 records/s")
	profile := flag.String("profile", "", "folder for CPU profiles of the sidecars")
	flag.Parse()
	c := choice{profile: *profile, rows: words(*rows), latency: *latency}
	var err [2]error
	c.sizes, err[0] = numbers(*sizes)
	c.connections, err[1] = numbers(*connections)
	for _, e := range err {
		exitOn(e)
	}
	exitOn(measure(c))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sidecar:", err)
		os.Exit(1)
	}
}

func words(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(w string) bool { return w == "" })
}

func numbers(list string) ([]int, error) {
	var all []int
	for _, word := range words(list) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number from 1 up", word)
		}
		all = append(all, n)
	}
	return all, nil
}

func measure(c choice) error {
	testing.Init() // package testservice is for tests, and asks for this
	b := &bench{profile: c.profile, report: &rig.Report{Benchmark: "sidecar", Unit: "cpu_us_per_record", Runs: runs, Machine: rig.ThisMachine()}}
	defer b.Close()
	err := b.Run(func() {
		b.prepare(c.rows)
		for _, connections := range c.connections {
			b.measureAll(connections, c.sizes)
		}
		if c.latency {
			b.measureLatency()
		}
	})
	if err != nil {
		return err
	}
	return b.report.Write()
}
