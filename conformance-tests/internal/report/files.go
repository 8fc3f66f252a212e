package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the sums, then each failure on a line of its own.
func (r *Results) WriteTable(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SUITE\tDRIVER\tPASSED\tFAILED\tSKIPPED\tKNOWN\tTIME")
	for _, t := range r.Tallies() {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", t.Suite, t.Driver, t.Passed, t.Failed, t.Skipped, t.Known, t.Duration.Round(time.Millisecond))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, result := range r.All {
		if result.Status == Failed || result.Status == Stale {
			_, _ = fmt.Fprintf(out, "%s %s: %s\n", strings.ToUpper(result.Status), result.name(), result.Message)
		}
	}
	return nil
}

// WriteFiles writes results.json, TEST-conformance.xml and index.html into a folder.
func (r *Results) WriteFiles(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "results.json"), encoded, 0o644); err != nil {
		return err
	}
	junit, err := xml.MarshalIndent(r.junit(), "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "TEST-conformance.xml"), append([]byte(xml.Header), junit...), 0o644); err != nil {
		return err
	}
	page, err := os.Create(filepath.Join(folder, "index.html"))
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	return r.writePage(page)
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Seconds float64     `xml:"time,attr"`
	Failure *junitText  `xml:"failure"`
	Skipped *junitEmpty `xml:"skipped"`
}

type junitText struct {
	Message string `xml:"message,attr"`
}

type junitEmpty struct {
	Message string `xml:"message,attr"`
}

func (r *Results) junit() junitSuite {
	suite := junitSuite{
		Name: "conformance", Tests: len(r.All), Failures: r.Count(Failed, Stale), Skipped: r.Count(Skipped, Known),
	}
	for _, result := range r.All {
		c := junitCase{Class: result.Suite + "." + result.Driver, Name: result.Case, Seconds: result.Duration.Seconds()}
		switch result.Status {
		case Failed, Stale:
			c.Failure = &junitText{result.Message}
		case Skipped, Known:
			c.Skipped = &junitEmpty{result.Message}
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite
}
