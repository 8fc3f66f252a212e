package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// Marks between which the compliance matrix stands in a document.
const (
	complianceBegin = "<!-- compliance matrix: written by `make -C conformance-tests compliance` from the results of a run -->\n"
	complianceEnd   = "<!-- end of the compliance matrix -->\n"
)

// row of the compliance matrix: what a person asks for, and the cases that prove it. A feature that a driver does not have is a dash.
type row struct {
	asks, suite, cases, feature string
}

var rows = []row{
	{"agrees with every vector of the specification", "vectors", "*", ""},
	{"refuses every flipped bit, cut, move and forgery", "tampering", "*", ""},
	{"comes to the same verdict on mutated input", "fuzz", "*", ""},
	{"reads what every SDK writes, in every codec of Kafka", "matrix", "reads-*", ""},
	{"writes in transactions", "matrix", "reads-*", "transactions"},
	{"binds record keys", "matrix", "reads-*", "record-key"},
	{"compresses before encryption", "matrix", "reads-*", "compression"},
	{"meets what is never readable as a failure action says", "actions", "*", ""},
	{"follows rotation, by order and by itself", "lifecycle", "rotat*", ""},
	{"stops with its lease, and comes back", "lifecycle", "lease-*", ""},
	{"obeys revoking and destroying", "lifecycle", "[rd]e*", ""},
	{"leaks nothing when the key service is in trouble", "leak", "*", ""},
}

// WriteCompliance puts the matrix of a results.json between the marks of a document.
func WriteCompliance(results, document string) error {
	data, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	var r Results
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("%s: %w", results, err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), complianceBegin)
	_, after, ended := strings.Cut(rest, complianceEnd)
	if !begun || !ended {
		return fmt.Errorf("%s has no place for the compliance matrix", document)
	}
	return os.WriteFile(document, []byte(before+complianceBegin+r.compliance()+complianceEnd+after), 0o644)
}

func (r *Results) compliance() string {
	var drivers []string
	for name := range r.Facts.Drivers {
		drivers = append(drivers, name)
	}
	slices.Sort(drivers)
	var out strings.Builder
	fmt.Fprintf(&out, "| | %s |\n| --- |%s\n", strings.Join(drivers, " | "), strings.Repeat(" --- |", len(drivers)))
	for _, row := range rows {
		fmt.Fprintf(&out, "| %s |", row.asks)
		for _, name := range drivers {
			fmt.Fprintf(&out, " %s |", r.cell(row, name))
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (r *Results) cell(row row, driver string) string {
	if row.feature != "" && !slices.Contains(r.Facts.Features[driver], row.feature) {
		return "–"
	}
	passed, failed, of := 0, 0, 0
	for _, result := range r.All {
		name := strings.ReplaceAll(result.Case, "/", " ") // which a star does not match
		if match, _ := path.Match(row.cases, name); !match || result.Suite != row.suite || !row.concerns(result, driver) {
			continue
		}
		switch result.Status {
		case Passed:
			passed++
		case Skipped:
			continue
		default:
			failed++
		}
		of++
	}
	switch {
	case of == 0:
		return "–"
	case failed > 0:
		return fmt.Sprintf("%d of %d", passed, of)
	}
	return fmt.Sprintf("%d ✓", passed)
}

// concerns: what a driver writes is proved by those that read it, all else by itself.
func (row row) concerns(result Result, driver string) bool {
	if row.feature != "" {
		return result.Case == "reads-"+driver
	}
	return result.Driver == driver
}
