// What a benchmark says.

package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const results = "build/bench"

// Row is one figure of a case.
type Row struct {
	Case     string             `json:"case"`
	Row      string             `json:"row"`
	Unit     string             `json:"unit,omitempty"` // when it is not the report's
	Value    float64            `json:"value"`
	Min      float64            `json:"min"`
	Max      float64            `json:"max"`
	Baseline string             `json:"baseline,omitempty"`
	Ratio    float64            `json:"ratio,omitempty"`
	Figures  map[string]float64 `json:"figures,omitempty"` // beside the value, medians; the names have the units
	Promise  string             `json:"promise,omitempty"`
	Kept     *bool              `json:"kept,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	Cores int    `json:"cores"`
	CPU   string `json:"cpu"`
}

// Report is what a benchmark prints, as one JSON object, at its end.
type Report struct {
	Benchmark string  `json:"benchmark"`
	Unit      string  `json:"unit"`
	Runs      int     `json:"runs"`
	Machine   Machine `json:"machine"`
	Rows      []Row   `json:"rows"`
}

// Add takes a row and says it on stderr.
func (r *Report) Add(one Row) {
	r.Rows = append(r.Rows, one)
	line, err := json.Marshal(one)
	Check(err)
	fmt.Fprintln(os.Stderr, string(line))
}

// Promised adds what was promised of a row, and whether that was kept.
func (one Row) Promised(text string, kept bool) Row {
	one.Promise, one.Kept = text, &kept
	return one
}

// SayBroken names the promises that were not kept.
func (r *Report) SayBroken() {
	for _, one := range r.Rows {
		if one.Kept != nil && !*one.Kept {
			fmt.Fprintf(os.Stderr, "PROMISE NOT KEPT: %s: %s; see its row\n", one.Case, one.Promise)
		}
	}
}

// Write prints the report, and keeps it in build/bench.
func (r *Report) Write() error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(results, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(results, r.Benchmark+".json"), append(line, '\n'), 0o600); err != nil {
		return err
	}
	_, err = fmt.Println(string(line))
	return err
}

// Series holds the same figure of several runs.
type Series []float64

// Row gives median, least and most.
func (s Series) Row(name, kind, unit string) Row {
	return Row{Case: name, Row: kind, Unit: unit, Value: Round(s.Median()), Min: Round(slices.Min(s)), Max: Round(slices.Max(s))}
}

// Median gives the one in the middle.
func (s Series) Median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// Ratio gives the median of the pairwise ratios.
func (s Series) Ratio(baseline Series) float64 {
	ratios := make(Series, len(s))
	for i := range s {
		ratios[i] = s[i] / baseline[i]
	}
	return Round(ratios.Median())
}

// Round leaves two digits behind the point.
func Round(value float64) float64 { return float64(int64(value*100+0.5)) / 100 }

// ThisMachine describes it.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), CPU: "unknown"}
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
