// The live view in a terminal.

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

type topCommand struct {
	Once  bool          `help:"Print once and end. So it is too when the output is not a terminal."`
	Every time.Duration `default:"2s" placeholder:"TIME" help:"How often to look (default: ${default})."`
}

// Escape sequences of every terminal of today.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // and no cursor
	backAgain   = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
	bold, dim   = "\x1b[1m", "\x1b[2m"
	red, yellow = "\x1b[31m", "\x1b[33m"
	normal      = "\x1b[0m"
)

// Run shows the view until it is interrupted.
func (c *topCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	if c.Every < time.Second || c.Every > time.Hour {
		return fmt.Errorf("--every is 1s to 1h, not %s", c.Every)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	terminal, ok := s.Out.(*os.File)
	if c.Once || g.JSON || !ok || !term.IsTerminal(int(terminal.Fd())) {
		return c.print(ctx, g, s.Out, client)
	}
	return c.watch(ctx, terminal, client)
}

func look(ctx context.Context, client *operator.Client) (v operator.View, err error) {
	err = client.Get(ctx, "/v1/sidecars", nil, &v)
	return v, err
}

func (*topCommand) print(ctx context.Context, g *Globals, out io.Writer, client *operator.Client) error {
	v, err := look(ctx, client)
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(out, v)
	}
	_, err = fmt.Fprintln(out, strings.Join(viewLines(v, time.Now(), 0, false), "\n"))
	return err
}

// watch draws the view again and again. What cannot be had is said in its place.
func (c *topCommand) watch(ctx context.Context, terminal *os.File, client *operator.Client) error {
	if _, err := fmt.Fprint(terminal, otherScreen); err != nil {
		return err
	}
	defer func() { _, _ = fmt.Fprint(terminal, backAgain) }()
	for {
		width, height, err := term.GetSize(int(terminal.Fd()))
		if err != nil {
			return err
		}
		v, err := look(ctx, client)
		lines := viewLines(v, time.Now(), width, true)
		if err != nil && ctx.Err() == nil {
			lines = []string{red + "cipherlane top: " + view.Plain(err.Error()) + normal}
		}
		if len(lines) > height && height > 1 {
			lines = append(lines[:height-1], dim+fmt.Sprintf("… %d lines more", len(lines)-height+1)+normal)
		}
		if _, err := fmt.Fprint(terminal, home+strings.Join(lines, clearLine+"\r\n")+clearLine+clearRest); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
	}
}

// painter makes lines of a width; 0 is any. In plain text there are no colours.
type painter struct {
	width  int
	colour bool
	lines  []string
}

func (p *painter) paint(style, text string) string {
	if !p.colour || style == "" {
		return text
	}
	return style + text + normal
}

func (p *painter) line(style, text string) {
	p.lines = append(p.lines, p.paint(style, p.cut(text)))
}

func (p *painter) cut(text string) string {
	if p.width == 0 || utf8.RuneCountInString(text) <= p.width {
		return text
	}
	return string([]rune(text)[:max(0, p.width-1)]) + "…"
}

// columns prints rows aligned; the style of a row is that of the function.
func (p *painter) columns(heading []string, rows [][]string, style func(row int) string) {
	widths := make([]int, len(heading))
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	join := func(row []string) string {
		var text strings.Builder
		for i, cell := range row {
			text.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		return strings.TrimRight(text.String(), " ")
	}
	p.line(dim, join(heading))
	for i, row := range rows {
		p.line(style(i), join(row))
	}
}

func viewLines(v operator.View, now time.Time, width int, colour bool) []string {
	p := &painter{width: width, colour: colour}
	p.line(bold, fmt.Sprintf("cipherlane top · %s · %s · %d sidecars · %d leases of data keys", v.Instance, now.Format(time.TimeOnly), len(v.Sidecars), len(v.Leases)))
	if len(v.Sidecars) == 0 {
		p.line("", "No sidecar has reported to this replica in the last 30 seconds.")
	}
	for _, s := range v.Sidecars {
		p.sidecar(s)
	}
	if len(v.Leases) > 0 {
		p.leases(v.Leases, now)
	}
	return p.lines
}

// soon is when what ends is shown as such, in seconds.
const (
	soonLease       = 10
	soonCertificate = 600
)

func (p *painter) sidecar(s view.Sidecar) {
	p.line("", "")
	p.line(bold, fmt.Sprintf("%s  %s  %s  up %s  certificate %s  %d connections", s.Host, s.Principal, strings.Join(s.Listens, " "),
		view.Span(s.Uptime), view.Span(s.Certificate), len(s.Connections)))
	rows := make([][]string, len(s.Uses))
	for i, u := range s.Uses {
		rows[i] = []string{u.Principal, u.Action, u.Name, view.Count(u.Requests), view.Count(u.Records), view.Size(u.Bytes), view.Count(u.PerSecond), view.Span(u.Last), view.Span(u.ExpiresIn)}
	}
	if len(rows) > 0 {
		p.columns([]string{"PRINCIPAL", "ACTION", "ON", "REQUESTS", "RECORDS", "BYTES", "PER S", "LAST", "LEASE"}, rows, func(i int) string {
			return warn(s.Uses[i].ExpiresIn, soonLease)
		})
	}
	rows = nil
	for _, d := range s.Denials {
		rows = append(rows, []string{orNobody(d.Principal), d.Action, d.Name, d.Code, view.Count(d.Count), view.Span(d.Last)})
	}
	if len(rows) > 0 {
		p.columns([]string{"REFUSED", "ACTION", "ON", "WHY", "TIMES", "LAST"}, rows, func(int) string { return red })
	}
	rows = nil
	for _, c := range s.Connections {
		certificate := "-"
		if c.Certificate > 0 {
			certificate = view.Span(c.Certificate)
		}
		rows = append(rows, []string{orNobody(c.Principal), c.Remote, c.Client, c.Process, view.Span(c.Since), certificate})
	}
	if len(rows) > 0 {
		p.columns([]string{"CONNECTED", "FROM", "CLIENT", "PROCESS", "SINCE", "CERTIFICATE"}, rows, func(i int) string {
			if s.Connections[i].Certificate == 0 {
				return ""
			}
			return warn(s.Connections[i].Certificate, soonCertificate)
		})
	}
	if s.Truncated {
		p.line(dim, "there is more than is shown")
	}
}

func (p *painter) leases(all []operator.Lease, now time.Time) {
	p.line("", "")
	p.line(bold, "data keys")
	rows := make([][]string, len(all))
	for i, l := range all {
		rows[i] = []string{view.Plain(l.Principal), l.Action, l.Scope, strconv.FormatInt(l.Renewals, 10), view.Span(max(0, l.Expires.Sub(now).Seconds()))}
	}
	p.columns([]string{"PRINCIPAL", "ACTION", "SCOPE", "RENEWALS", "LEASE"}, rows, func(i int) string {
		return warn(all[i].Expires.Sub(now).Seconds(), soonLease)
	})
}

func warn(seconds, soon float64) string {
	if seconds < soon {
		return yellow
	}
	return ""
}

func orNobody(principal string) string {
	if principal == "" {
		return "(nobody)"
	}
	return principal
}
