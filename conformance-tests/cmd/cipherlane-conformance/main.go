// The conformance runner's command line: `run` tests drivers, `list` shows the suites, `reference-driver` is the driver of the
// Go reference.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/reference"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/report"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/suite"
)

type commands struct {
	Run        runCommand        `cmd:"" help:"Test SDKs through their drivers (spec/conformance.md); exit 1 if anything fails."`
	List       listCommand       `cmd:"" help:"Show the suites."`
	Compliance complianceCommand `cmd:"" help:"Write the compliance matrix of a run into a document."`
	Reference  referenceCommand  `cmd:"" name:"reference-driver" help:"Be the driver of the Go reference, on standard input and output."`
}

type listCommand struct{}

// Run prints a suite a line.
func (listCommand) Run() error {
	for _, s := range suite.All {
		if _, err := fmt.Printf("%-10s %s\n", s.Name, s.About); err != nil {
			return err
		}
	}
	return nil
}

type complianceCommand struct {
	Results  string `arg:"" help:"The results.json of a run of everything."`
	Document string `arg:"" help:"A Markdown file with the marks of the matrix."`
}

// Run rewrites the document.
func (c complianceCommand) Run() error { return report.WriteCompliance(c.Results, c.Document) }

type referenceCommand struct {
	Without string `placeholder:"GUARD" enum:",${guards}" default:"" help:"Switch a guard off, to show that a suite notices: ${guards}."`
}

// Run serves until standard input ends.
func (c referenceCommand) Run() error {
	reference.Without(c.Without)
	return reference.Serve(os.Stdin, os.Stdout)
}

func main() {
	var cli commands
	parsed := kong.Parse(&cli, kong.Name("cipherlane-conformance"), kong.Vars{"guards": strings.Join(reference.Guards, ",")},
		kong.Description("Tests that SDKs of Cipherlane read what the others write, refuse what they must, and leak nothing."))
	parsed.FatalIfErrorf(parsed.Run())
}
