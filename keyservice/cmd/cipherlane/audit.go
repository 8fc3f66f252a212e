// The commands about audit logs. They read files and need no key service.

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
)

type auditCommands struct {
	Verify auditVerify `cmd:"" help:"Check that a log is whole: nothing removed, changed, or put in another order."`
	Search auditSearch `cmd:"" help:"Find lines, for example: who got a key for a topic between two times?"`
}

type auditVerify struct {
	Files  []string `arg:"" type:"existingfile" help:"The log: its current file (those rotated beside it are read too), or all files of one chain, oldest first. Names ending in .gz are unpacked."`
	Head   string   `placeholder:"NUMBER:HASH" help:"A line that must be there: an anchor kept elsewhere. Without one, lines removed at the end are not noticed."`
	Middle bool     `help:"Allow that older files were put away: the first line need not be the first of the chain."`
	Copy   bool     `help:"The files are a copy from syslog or stdout: text before each line, repeated lines and, without a file, new chains are allowed."`
}

var errNotWhole = errors.New("the audit log is NOT whole")

// Run checks.
func (c *auditVerify) Run(g *Globals, s *commandline.Streams) error {
	expect := audit.Expect{Middle: c.Middle, Copy: c.Copy}
	if c.Head != "" {
		head, err := audit.ParseHead(c.Head)
		if err != nil {
			return err
		}
		expect.Head = &head
	}
	paths, err := logFiles(c.Files)
	if err != nil {
		return err
	}
	report, err := audit.Verify(paths, expect)
	if err != nil {
		return err
	}
	if g.JSON {
		err = printJSON(s.Out, report)
	} else {
		err = printReport(s.Out, report)
	}
	if err == nil && !report.Whole() {
		return errNotWhole
	}
	return err
}

// logFiles adds the rotated files to a current one that stands alone.
func logFiles(paths []string) ([]string, error) {
	if len(paths) == 1 {
		return audit.Files(paths[0])
	}
	return paths, nil
}

func printReport(out io.Writer, r *audit.Report) error {
	for _, p := range r.Problems {
		if _, err := fmt.Fprintf(out, "%s:%d: %s\n", p.File, p.Line, p.Text); err != nil {
			return err
		}
	}
	if r.More > 0 {
		if _, err := fmt.Fprintf(out, "and %d problems more\n", r.More); err != nil {
			return err
		}
	}
	t := newTable("chain", r.Chain)
	t.row("lines", fmt.Sprintf("%d in %s, from %s to %s", r.Lines, plural(r.Files, "file"), stamp(r.First), stamp(r.Last)))
	t.row("starts", fmt.Sprintf("%d of the service, %d after an unfinished line", r.Starts, r.Cut))
	t.row("head", r.Head)
	t.row("anchor", map[bool]string{true: "the head given is there", false: "none given: lines removed at the end would not be noticed (--head)"}[r.Anchored])
	t.row("result", map[bool]string{true: "whole", false: "NOT whole: " + plural(len(r.Problems)+r.More, "problem")}[r.Whole()])
	return t.print(out)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

type auditSearch struct {
	Files     []string `arg:"" type:"existingfile" help:"The log, as for verify. Searching does not check it."`
	Topic     string   `placeholder:"GLOB" help:"Topic, or a pattern with * and ?."`
	Scope     string   `placeholder:"GLOB" help:"Scope, or a pattern."`
	Principal string   `placeholder:"GLOB" help:"Who asked; * does not match a slash."`
	Kid       string   `placeholder:"KID" help:"A key id."`
	Action    string   `placeholder:"ACTION" help:"encrypt, decrypt, rotate, ..."`
	Outcome   string   `enum:"allowed,refused,begun," default:"" placeholder:"OUTCOME" help:"allowed, refused or begun."`
	From      string   `placeholder:"TIME" help:"The earliest time: RFC 3339, or a date (UTC), or a duration before now such as 24h."`
	To        string   `placeholder:"TIME" help:"The first time no longer meant."`
	Released  bool     `help:"Only lines that gave a key."`
	Who       bool     `help:"One line for each principal, in place of one for each record: who got a key? Implies --released."`
}

// Run searches.
func (c *auditSearch) Run(g *Globals, s *commandline.Streams) error {
	query, err := c.query(time.Now())
	if err != nil {
		return err
	}
	paths, err := logFiles(c.Files)
	if err != nil {
		return err
	}
	show := newShow(g.JSON, c.Who)
	unreadable, err := audit.Search(paths, query, func(line audit.Line) error { return show.line(s.Out, line) })
	if err == nil {
		err = show.end(s.Out)
	}
	if err == nil && unreadable > 0 {
		return fmt.Errorf("%s could not be read: run audit verify", plural(unreadable, "line"))
	}
	return err
}

func (c *auditSearch) query(now time.Time) (audit.Query, error) {
	q := audit.Query{
		Topic: c.Topic, Scope: c.Scope, Principal: c.Principal, Kid: c.Kid, Action: c.Action, Outcome: audit.Outcome(c.Outcome),
		WithKey: c.Released || c.Who,
	}
	var errFrom, errTo error
	q.From, errFrom = parseTime(c.From, now)
	q.To, errTo = parseTime(c.To, now)
	return q, errors.Join(errFrom, errTo)
}

func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	if before, err := time.ParseDuration(text); err == nil && before >= 0 {
		return now.Add(-before), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time: 2026-11-21T14:00:00Z, 2026-11-21, or a duration before now such as 24h", text)
}

// show prints what a search finds.
type show interface {
	line(out io.Writer, l audit.Line) error
	end(out io.Writer) error
}

func newShow(asJSON, who bool) show {
	switch {
	case who:
		return &showWho{json: asJSON, principals: map[string]*receiver{}}
	case asJSON:
		return showJSON{}
	default:
		return &showLines{table: newTable("TIME", "PRINCIPAL", "FROM", "ACTION", "TOPIC", "SCOPE", "OUTCOME", "KEYS")}
	}
}

// showJSON prints one object on a line: as they come, for other programs.
type showJSON struct{}

func (showJSON) line(out io.Writer, l audit.Line) error { return printJSONLine(out, l) }
func (showJSON) end(io.Writer) error                    { return nil }

type showLines struct{ table *table }

func (s *showLines) line(_ io.Writer, l audit.Line) error {
	outcome := string(l.Outcome)
	if l.Code != "" {
		outcome += " (" + l.Code + ")"
	}
	s.table.row(stamp(l.Time), dash(l.Principal), dash(l.Remote), l.Action, dash(l.Topic), dash(l.Scope), outcome, shortKids(l.Kids))
	return nil
}

func (s *showLines) end(out io.Writer) error { return s.table.print(out) }

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

const kidsShown = 2

func shortKids(kids []string) string {
	if len(kids) > kidsShown {
		return strings.Join(kids[:kidsShown], " ") + fmt.Sprintf(" and %d more", len(kids)-kidsShown)
	}
	return dash(strings.Join(kids, " "))
}

// receiver is a principal that got keys.
type receiver struct {
	Principal string    `json:"principal"`
	Actions   []string  `json:"actions"`
	Topics    []string  `json:"topics"`
	Kids      []string  `json:"kids"`
	Times     int       `json:"times"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
}

type showWho struct {
	json       bool
	principals map[string]*receiver
}

func (s *showWho) line(_ io.Writer, l audit.Line) error {
	r := s.principals[l.Principal]
	if r == nil {
		r = &receiver{Principal: l.Principal, First: l.Time}
		s.principals[l.Principal] = r
	}
	r.Times, r.Last = r.Times+1, l.Time
	r.Actions, r.Topics = with(r.Actions, l.Action), with(r.Topics, l.Topic)
	for _, kid := range l.Kids {
		r.Kids = with(r.Kids, kid)
	}
	return nil
}

// with adds a word to a sorted list that does not have it.
func with(list []string, word string) []string {
	at, found := slices.BinarySearch(list, word)
	if found {
		return list
	}
	return slices.Insert(list, at, word)
}

func (s *showWho) end(out io.Writer) error {
	all := []*receiver{}
	for _, name := range slices.Sorted(maps.Keys(s.principals)) {
		all = append(all, s.principals[name])
	}
	if s.json {
		return printJSON(out, map[string]any{"principals": all})
	}
	t := newTable("PRINCIPAL", "TO", "TOPICS", "TIMES", "FIRST", "LAST", "KEYS")
	for _, r := range all {
		t.row(r.Principal, strings.Join(r.Actions, ","), strings.Join(r.Topics, ","), strconv.Itoa(r.Times), stamp(r.First), stamp(r.Last), shortKids(r.Kids))
	}
	return t.print(out)
}
