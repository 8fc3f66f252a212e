// Package commandline runs the programs' command lines: one way to parse, to print and to end. What the commands do stands in cmd/.
package commandline

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

// Exit codes. A command may have more: it returns an error with a method ExitCode.
const (
	Failed  = 1 // the command did not do what was asked, or found what it looked for
	Misused = 2 // the arguments are wrong
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Standard are those of the process.
func Standard() *Streams { return &Streams{os.Stdin, os.Stdout, os.Stderr} }

// Program describes one.
type Program struct {
	Name  string
	About string // stands at the head of --help
	// Completion answers the shell when it asks what may follow.
	Completion bool
	// Bind is given to every command's Run, besides the streams.
	Bind []any
}

// Run parses args into cli, a struct for kong, runs the command and gives the exit code.
func Run(p Program, cli any, args []string, s *Streams) int {
	code := -1
	parser, err := kong.New(cli, kong.Name(p.Name), kong.Description(p.About), kong.UsageOnError(),
		kong.Writers(s.Out, s.Err), kong.Exit(func(c int) { code = c }), kong.Bind(append(p.Bind, s)...),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110, Compact: true}))
	if err != nil {
		_, _ = fmt.Fprintln(s.Err, err)
		return Misused
	}
	if p.Completion {
		kongcompletion.Register(parser)
	}
	if code >= 0 { // the shell asked what may follow
		return code
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // --help
		return code
	}
	if err != nil {
		parser.FatalIfErrorf(err)
		return Misused
	}
	return exitCode(p.Name, parsed.Run(), s)
}

func exitCode(name string, err error, s *Streams) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(s.Err, "%s: %v\n", name, err)
	var coded kong.ExitCoder
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return Failed
}
