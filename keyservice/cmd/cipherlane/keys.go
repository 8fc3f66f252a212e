// The commands about scopes and keys.

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
)

type scopesCommand struct{}

// Run lists the scopes.
func (scopesCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	scopes, err := client.Scopes(context.Background())
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, map[string]any{"scopes": scopes})
	}
	now, t := time.Now(), newTable("SCOPE", "CURRENT KEY", "MADE", "RECORDS", "PLAINTEXT", "NEXT ROTATION AT")
	for _, one := range scopes {
		r := one.Rotation
		t.row(one.Scope, one.Kid, ago(one.Created, now), strconv.FormatInt(one.Records, 10), size(one.Bytes),
			fmt.Sprintf("%s, %d records or %s", span(time.Duration(r.Every)*time.Second), r.Records, size(r.Bytes)))
	}
	return t.print(s.Out)
}

type keysCommand struct {
	Scope string `arg:"" help:"The scope."`
}

// Run lists the keys of a scope.
func (c *keysCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	keys, err := client.Keys(context.Background(), c.Scope)
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, map[string]any{"scope": c.Scope, "keys": keys})
	}
	return keyTable(keys).print(s.Out)
}

func keyTable(keys []operator.Key) *table {
	now, t := time.Now(), newTable("KEY", "STATE", "MADE", "RECORDS", "PLAINTEXT")
	for _, k := range keys {
		state := k.State
		if !k.Destroyed.IsZero() {
			state += " " + ago(k.Destroyed, now)
		}
		t.row(k.Kid, state, ago(k.Created, now), strconv.FormatInt(k.Records, 10), size(k.Bytes))
	}
	return t
}

type rotateCommand struct {
	Scope string `arg:"" help:"The scope. By default a topic is its own scope; the policy may say otherwise."`
}

// Run makes a new current key.
func (c *rotateCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	var made operator.Rotated
	if err := client.Post(context.Background(), operator.ScopePath(c.Scope, "rotate"), nil, &made); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, made)
	}
	_, err = fmt.Fprintf(s.Out, "Scope %s has a new current key, %s. Producers use it from their next renewal on; older keys stay readable.\n", made.Scope, made.Kid)
	return err
}

type rewrapCommand struct {
	Start bool `help:"Begin, unless it runs already. Without it, only show how far it is."`
	Wait  bool `help:"Wait until it is done."`
}

// Run begins or shows.
func (c *rewrapCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	var state operator.Rewrap
	if c.Start {
		err = client.Post(context.Background(), "/v1/rewrap", nil, &state)
	} else {
		err = client.Get(context.Background(), "/v1/rewrap", nil, &state)
	}
	for err == nil && c.Wait && state.State == "running" {
		time.Sleep(time.Second)
		state = operator.Rewrap{}
		err = client.Get(context.Background(), "/v1/rewrap", nil, &state)
	}
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, state)
	}
	return printRewrap(s, state)
}

func printRewrap(s *commandline.Streams, r operator.Rewrap) error {
	if r.State == "none" {
		_, err := fmt.Fprintln(s.Out, "The KEKs were never changed. To change them: cipherlane rewrap --start")
		return err
	}
	t := newTable("state", r.State)
	t.row("started", stamp(r.Started)+" by "+r.By+" on "+r.Instance)
	if !r.Finished.IsZero() {
		t.row("finished", stamp(r.Finished))
	}
	t.row("KEKs", fmt.Sprintf("%d of %d", r.KEKsDone, r.KEKs))
	t.row("data keys", strconv.FormatInt(r.KeysDone, 10))
	if r.Error != "" {
		t.row("stopped by", r.Error)
	}
	return t.print(s.Out)
}
