// Package report keeps results (this file) and writes them: as tables (table.go), JUnit XML and JSON (files.go), and as a page
// (page.go).
package report

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Statuses of a result. A known failure is one that the list of known failures has; a stale one is listed and did not fail.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
	Known   = "known"
	Stale   = "stale"
	// Unreached is a case that a driver says it cannot reach: skipped if a list has it, with the reason, else failed.
	Unreached = "unreached"
)

// Result is one case on one driver.
type Result struct {
	Suite    string        `json:"suite"`
	Case     string        `json:"case"`
	Driver   string        `json:"driver"`
	Status   string        `json:"status"`
	Message  string        `json:"message,omitempty"`
	Duration time.Duration `json:"nanoseconds"`
}

func (r Result) name() string { return r.Suite + "/" + r.Driver + "/" + r.Case }

// Facts are what a reader needs to judge the results.
type Facts struct {
	Begun       time.Time           `json:"begun"`
	Seed        uint64              `json:"seed"`
	Environment map[string]string   `json:"environment"`
	Drivers     map[string]string   `json:"drivers"`
	Features    map[string][]string `json:"features"` // of each driver
}

// Results of a run. Not safe for concurrent use.
type Results struct {
	Facts Facts    `json:"facts"`
	All   []Result `json:"results"`

	known []known
}

// known is a line of a list: what turns from one status into another.
type known struct {
	pattern, reason string
	from, to        string
	used            bool
}

// ReadKnown reads the list of known failures: lines of "SUITE/DRIVER/CASE  reason", the first part a glob; # starts a comment.
func (r *Results) ReadKnown(file string) error { return r.read(file, Failed, Known) }

// ReadUnreached reads the list of what drivers cannot reach, which has the same form.
func (r *Results) ReadUnreached(file string) error { return r.read(file, Unreached, Skipped) }

func (r *Results) read(file, from, to string) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	scanner := bufio.NewScanner(opened)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, reason, _ := strings.Cut(line, " ")
		if _, err := path.Match(pattern, ""); err != nil || strings.TrimSpace(reason) == "" {
			return fmt.Errorf("%s: %q is not SUITE/DRIVER/CASE and a reason", file, line)
		}
		r.known = append(r.known, known{pattern: pattern, reason: strings.TrimSpace(reason), from: from, to: to})
	}
	return scanner.Err()
}

// Add adds a result, and turns a failure into a known one, or into a skip, if a list has it.
func (r *Results) Add(result Result) {
	for i := range r.known {
		match, _ := path.Match(r.known[i].pattern, result.name())
		if match && result.Status == r.known[i].from {
			r.known[i].used = true
			result.Status, result.Message = r.known[i].to, r.known[i].reason+": "+result.Message
		}
	}
	if result.Status == Unreached {
		result.Status = Failed
	}
	r.All = append(r.All, result)
}

// Finish adds a stale result for each entry of the list that met no failure. Only for a run of everything.
func (r *Results) Finish() {
	for _, entry := range r.known {
		if !entry.used {
			r.All = append(r.All, Result{
				Suite: "lists", Case: entry.pattern, Driver: "-", Status: Stale,
				Message: "nothing that is " + entry.from + " matches it any more: remove the line",
			})
		}
	}
}

// Count says how many results have one of these statuses.
func (r *Results) Count(statuses ...string) int {
	count := 0
	for _, result := range r.All {
		if slices.Contains(statuses, result.Status) {
			count++
		}
	}
	return count
}

// Tally is the sum over a suite on a driver.
type Tally struct {
	Suite, Driver                  string
	Passed, Failed, Skipped, Known int
	Duration                       time.Duration
}

// Tallies are sorted by suite in the order in which they ran, then by driver.
func (r *Results) Tallies() []Tally {
	index := map[[2]string]int{}
	order := map[string]int{}
	var tallies []Tally
	for _, result := range r.All {
		if _, there := order[result.Suite]; !there {
			order[result.Suite] = len(order)
		}
		key := [2]string{result.Suite, result.Driver}
		if _, there := index[key]; !there {
			index[key] = len(tallies)
			tallies = append(tallies, Tally{Suite: result.Suite, Driver: result.Driver})
		}
		tallies[index[key]].add(result)
	}
	slices.SortStableFunc(tallies, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(order[a.Suite], order[b.Suite]), cmp.Compare(a.Driver, b.Driver))
	})
	return tallies
}

func (t *Tally) add(result Result) {
	t.Duration += result.Duration
	switch result.Status {
	case Passed:
		t.Passed++
	case Skipped:
		t.Skipped++
	case Known:
		t.Known++
	default:
		t.Failed++
	}
}
