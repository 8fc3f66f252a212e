// The command destroy: two steps. The first shows what becomes unreadable, the second does it.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
)

type destroyCommand struct {
	Scope  string   `arg:"" help:"The scope."`
	Kids   []string `arg:"" optional:"" help:"The keys to destroy."`
	All    bool     `help:"Every key that the scope has: it gets a new one, and all that was encrypted until now becomes unreadable."`
	DryRun bool     `help:"Only show what would become unreadable, and the token with which --yes does it."`
	Yes    string   `placeholder:"TOKEN" help:"For scripts: do not ask; the token is the one that --dry-run printed for the same keys, within five minutes."`
}

type destroyRequest struct {
	Kids    []string `json:"kids,omitempty"`
	All     bool     `json:"all,omitzero"`
	Confirm string   `json:"confirm,omitzero"`
}

var errNothingDestroyed = errors.New("nothing was destroyed")

// Run shows, asks and destroys.
func (c *destroyCommand) Run(g *Globals, s *commandline.Streams) error {
	if c.All == (len(c.Kids) > 0) {
		return errors.New("name the keys to destroy (cipherlane keys SCOPE lists them), or --all")
	}
	if c.DryRun && c.Yes != "" {
		return errors.New("--dry-run and --yes do not go together")
	}
	client, err := g.connect()
	if err != nil {
		return err
	}
	if c.Yes != "" {
		return c.confirm(g, s, client, c.Yes)
	}
	var doomed operator.Doomed
	if err := client.Post(context.Background(), c.path(), destroyRequest{Kids: c.Kids, All: c.All}, &doomed); err != nil {
		return err
	}
	if c.DryRun {
		return c.show(g, s, doomed)
	}
	if err := printDoomed(s.Err, doomed); err != nil {
		return err
	}
	if err := ask(s, c.Scope); err != nil {
		return err
	}
	return c.confirm(g, s, client, doomed.Confirm)
}

func (c *destroyCommand) path() string { return operator.ScopePath(c.Scope, "destroy") }

func (c *destroyCommand) show(g *Globals, s *commandline.Streams, doomed operator.Doomed) error {
	if g.JSON {
		return printJSON(s.Out, doomed)
	}
	if err := printDoomed(s.Out, doomed); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.Out, "\nNothing was destroyed. To do it, within %s: the same command with --yes=%s in place of --dry-run\n",
		span(time.Duration(doomed.ExpiresIn)*time.Second), doomed.Confirm)
	return err
}

func printDoomed(out io.Writer, d operator.Doomed) error {
	if _, err := fmt.Fprintf(out, "This makes unreadable, for good, on every broker, disk and backup of Kafka:\n\n"); err != nil {
		return err
	}
	t := newTable("  scope", d.Scope)
	t.row("  topics", strings.Join(d.Topics, ", ")+", and copies of their records elsewhere")
	t.row("  keys", fmt.Sprintf("%d, made from %s to %s", d.Count, stamp(d.Oldest), stamp(d.Newest)))
	t.row("  records", fmt.Sprintf("%d with %s of plaintext, as producers reported", d.Records, size(d.Bytes)))
	if err := t.print(out); err != nil {
		return err
	}
	return printAfter(out, keyTable(d.Keys))
}

// ask goes on only if the scope's name is typed: a y is typed too easily.
func ask(s *commandline.Streams, scope string) error {
	if _, err := fmt.Fprintf(s.Err, "\nType the name of the scope to destroy these keys: "); err != nil {
		return err
	}
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != scope {
		return errNothingDestroyed
	}
	return nil
}

func (c *destroyCommand) confirm(g *Globals, s *commandline.Streams, client *operator.Client, token string) error {
	var done operator.Destroyed
	if err := client.Post(context.Background(), c.path(), destroyRequest{Kids: c.Kids, All: c.All, Confirm: token}, &done); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, done)
	}
	_, err := fmt.Fprintf(s.Out, "Destroyed %s of scope %s; its current key is %s. Clients that hold a lease keep a key to the lease's end.\n",
		plural(int(done.Destroyed), "key"), done.Scope, done.Current)
	return err
}
