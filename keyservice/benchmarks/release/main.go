// Command release measures what giving out a key costs, beside a plain HTTPS handler of the same size of answer under the
// same mutual TLS. Both serve as child processes; runs are interleaved. The last line of stdout is one JSON object
// (the design's section on benchmarks); value and ratio are wall time of a client, CPU time is the server's.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	runs    = 5
	warmUp  = 200
	program = "build/bin/cipherlane-keyservice"
	results = "build/bench"
)

// testCase is one figure: which call, how many connections at once, how many calls in a run.
type testCase struct {
	name        string
	principal   string
	path        string
	connections int
	calls       int
	kids        int
}

var cases = []testCase{
	{"encryption-key/32B/1", "producer", "/v1/encryption-key", 1, 1000, 0},
	{"encryption-key/32B/32", "producer", "/v1/encryption-key", 32, 4000, 0},
	{"decryption-keys/32B/1", "consumer", "/v1/decryption-keys", 1, 1000, 1},
	{"decryption-keys/32000B/1", "consumer", "/v1/decryption-keys", 1, 100, 1000},
}

type row struct {
	Case     string  `json:"case"`
	Row      string  `json:"row"`
	Value    float64 `json:"value"`
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	CPU      float64 `json:"server_cpu_us_per_request"`
	Baseline string  `json:"baseline,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
}

type machine struct {
	Cores int    `json:"cores"`
	CPU   string `json:"cpu"`
}

type report struct {
	Benchmark string  `json:"benchmark"`
	Unit      string  `json:"unit"`
	Runs      int     `json:"runs"`
	Machine   machine `json:"machine"`
	Rows      []row   `json:"rows"`
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "plain" {
		exitOn(servePlain(os.Args[2]))
		return
	}
	exitOn(measureAll())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func measureAll() error {
	dir, err := os.MkdirTemp("", "cipherlane-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	servers, err := startServers(filepath.Join(dir, "dev"))
	if err != nil {
		return err
	}
	defer servers.stop()
	out := report{Benchmark: "keyservice-release", Unit: "us_per_request", Runs: runs, Machine: thisMachine()}
	for _, c := range cases {
		rows, err := measureCase(servers, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		out.Rows = append(out.Rows, rows...)
	}
	return write(out)
}

// measureCase interleaves the runs of both servers.
func measureCase(s *servers, c testCase) ([]row, error) {
	body, size, err := s.prepare(c)
	if err != nil {
		return nil, err
	}
	var plain, keyService series
	for run := range runs {
		if err := plain.add(s.plain, c, fmt.Sprintf("/%d", size), body); err != nil {
			return nil, err
		}
		if err := keyService.add(s.keyService, c, c.path, body); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "%s run %d: plain-https %.0f us, cipherlane %.0f us\n", c.name, run+1, plain.wall[run], keyService.wall[run])
	}
	baseline, measured := plain.row(c.name, "plain-https"), keyService.row(c.name, "cipherlane")
	ratios := make([]float64, runs)
	for i := range ratios {
		ratios[i] = keyService.wall[i] / plain.wall[i]
	}
	measured.Baseline, measured.Ratio = "plain-https", round(median(ratios), 100)
	return []row{baseline, measured}, nil
}

// series holds the runs of one server: microseconds for each request.
type series struct{ wall, cpu []float64 }

func (s *series) add(server *server, c testCase, path string, body []byte) error {
	if len(s.wall) == 0 {
		if _, err := server.call(c, path, body, warmUp); err != nil {
			return err
		}
	}
	before, err := server.cpu()
	if err != nil {
		return err
	}
	took, err := server.call(c, path, body, c.calls)
	if err != nil {
		return err
	}
	after, err := server.cpu()
	s.wall = append(s.wall, float64(took.Microseconds())/float64(c.calls))
	s.cpu = append(s.cpu, float64((after-before).Microseconds())/float64(c.calls))
	return err
}

func (s *series) row(name, kind string) row {
	return row{
		Case: name, Row: kind, Value: round(median(s.wall), 10), Min: round(slices.Min(s.wall), 10),
		Max: round(slices.Max(s.wall), 10), CPU: round(median(s.cpu), 10),
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func round(value, parts float64) float64 { return float64(int64(value*parts+0.5)) / parts }

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), CPU: "unknown"}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(line, "model name"); found {
			m.CPU = strings.TrimLeft(strings.TrimSpace(name), ": \t")
			break
		}
	}
	return m
}

func write(out report) error {
	line, err := json.Marshal(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(results, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(results, out.Benchmark+".json"), append(line, '\n'), 0o600); err != nil {
		return err
	}
	_, err = fmt.Println(string(line))
	return err
}

// deadline bounds every single call.
const deadline = 30 * time.Second
