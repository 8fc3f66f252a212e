// What the benchmark says.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

type row struct {
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

// add takes a row and says it on stderr.
func (r *report) add(one row) {
	r.Rows = append(r.Rows, one)
	line, err := json.Marshal(one)
	check(err)
	fmt.Fprintln(os.Stderr, string(line))
}

// promised adds what was promised of a row, and whether that was kept.
func (one row) promised(text string, kept bool) row {
	one.Promise, one.Kept = text, &kept
	return one
}

// sayBroken names the promises that were not kept.
func (r *report) sayBroken() {
	for _, one := range r.Rows {
		if one.Kept != nil && !*one.Kept {
			fmt.Fprintf(os.Stderr, "PROMISE NOT KEPT: %s: %s; see its row\n", one.Case, one.Promise)
		}
	}
}

func (r *report) write() error {
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

// series holds the same figure of several runs.
type series []float64

func (s series) row(name, kind, unit string) row {
	return row{Case: name, Row: kind, Unit: unit, Value: round(s.median()), Min: round(slices.Min(s)), Max: round(slices.Max(s))}
}

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// ratio gives the median of the pairwise ratios.
func (s series) ratio(baseline series) float64 {
	ratios := make(series, len(s))
	for i := range s {
		ratios[i] = s[i] / baseline[i]
	}
	return round(ratios.median())
}

func round(value float64) float64 { return float64(int64(value*100+0.5)) / 100 }

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
