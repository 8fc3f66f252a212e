// What commands print: tables for people, JSON for programs.

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// printJSON prints one indented document.
func printJSON(out io.Writer, v any) error {
	if err := json.MarshalWrite(out, v, jsontext.WithIndent("  "), json.Deterministic(true)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// printJSONLine prints one document on a line.
func printJSONLine(out io.Writer, v any) error {
	if err := json.MarshalWrite(out, v, json.Deterministic(true)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// table prints rows under a heading, in columns.
type table struct {
	heading []string
	rows    [][]string
}

func newTable(heading ...string) *table { return &table{heading: heading} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.heading}, t.rows...) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t ")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// ago tells a time as a person would: how long before now, in its two greatest units.
func ago(then, now time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return span(now.Sub(then)) + " ago"
}

// span writes a duration with its two greatest units.
func span(d time.Duration) string {
	if d < 0 {
		return "-" + span(-d)
	}
	days, hours, minutes, seconds := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd %dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh %dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm %ds", minutes, seconds)
	default:
		return fmt.Sprintf("%ds", seconds)
	}
}

// size writes a number of bytes.
func size(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/step, 0
	for units := "KMGTPE"; value >= step && unit < len(units)-1; unit++ {
		value /= step
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit])
}
