// The command scan: what is in a topic? The counting is in internal/scan.

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/scan"
)

type scanCommand struct {
	Topics         []string      `arg:"" help:"Topics to read, from their beginning to their end as of now. Nothing is committed."`
	Decrypt        bool          `help:"Ask the key service for the keys, as a consumer would, and try to decrypt every record."`
	AllowPlaintext bool          `help:"Count plaintext, but do not exit with 3 because of it: during a migration."`
	MaxPlaintext   int           `default:"67108864" placeholder:"BYTES" help:"With --decrypt: the largest plaintext that is read (default: ${default})."`
	Stall          time.Duration `default:"30s" placeholder:"TIME" help:"Give up when nothing arrives for so long (default: ${default})."`

	kafkaFlags
}

// foundError is what a scan was made to find.
type foundError struct{ text string }

func (e foundError) Error() string { return e.text }

// ExitCode tells it apart from a scan that could not be made.
func (foundError) ExitCode() int { return 3 }

// Run scans.
func (c *scanCommand) Run(g *Globals, s *commandline.Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kafka, err := c.options()
	if err != nil {
		return err
	}
	o := scan.Options{Topics: c.Topics, Kafka: kafka, Stall: c.Stall, MaxPlaintext: c.MaxPlaintext}
	if c.Decrypt {
		if o.KeyService, err = g.connect(); err != nil {
			return err
		}
	}
	bar := newProgress(s.Err)
	o.Progress = bar.show
	report, err := scan.Run(ctx, o)
	bar.end()
	if err != nil {
		return err
	}
	if g.JSON {
		err = printJSON(s.Out, report)
	} else {
		err = printScan(s.Out, report)
	}
	if err == nil {
		err = c.judge(report)
	}
	return err
}

func (c *scanCommand) judge(r *scan.Report) error {
	var found []string
	if n := r.Total.Plaintext; n > 0 && !c.AllowPlaintext {
		found = append(found, fmt.Sprintf("%d in plaintext", n))
	}
	if n := r.Total.Bad(); n > 0 {
		found = append(found, fmt.Sprintf("%d that cannot be read", n))
	}
	if len(found) == 0 {
		return nil
	}
	return foundError{"found records: " + strings.Join(found, ", ")}
}

func printScan(out io.Writer, r *scan.Report) error {
	t := newTable("TOPIC", "PARTITION", "RECORDS", "ENCRYPTED", "PLAINTEXT", "NULL", "UNREADABLE", "FIRST PLAINTEXT", "FIRST UNREADABLE")
	for _, p := range r.Partitions {
		t.row(p.Topic, number(int64(p.Partition)), number(p.Records), number(p.Encrypted), number(p.Plaintext), number(p.Null), number(p.Bad()),
			offset(p.FirstPlaintext), offset(p.FirstBad))
	}
	total := r.Total
	t.row("all", "", number(total.Records), number(total.Encrypted), number(total.Plaintext), number(total.Null), number(total.Bad()))
	if err := t.print(out); err != nil {
		return err
	}
	keys := newTable("KEY", "RECORDS", "STATE")
	for _, kid := range slices.Sorted(maps.Keys(total.Kids)) {
		keys.row(kid, number(total.Kids[kid]), r.State(kid))
	}
	if err := printAfter(out, keys); err != nil {
		return err
	}
	reasons := newTable("WHY UNREADABLE", "RECORDS")
	for _, code := range slices.Sorted(maps.Keys(total.Codes)) {
		reasons.row(code, number(total.Codes[code]))
	}
	return printAfter(out, reasons)
}

// printAfter prints a table that has rows, behind an empty line.
func printAfter(out io.Writer, t *table) error {
	if len(t.rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return t.print(out)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func offset(at *int64) string {
	if at == nil {
		return "-"
	}
	return fmt.Sprintf("offset %d", *at)
}

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(out io.Writer) *progress {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) { // #nosec G115 -- a file descriptor
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(1, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("scanning"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("records"),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())}
}

func (p *progress) show(done, all int64) {
	if p.bar != nil {
		p.bar.ChangeMax64(max(1, all))
		_ = p.bar.Set64(done)
	}
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
