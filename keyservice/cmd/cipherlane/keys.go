// The commands about scopes and keys.

package main

import (
	"context"
	"fmt"
	"net/url"
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
	t := newTable("SCOPE", "CURRENT KEY", "MADE", "RECORDS", "BYTES")
	for _, one := range scopes {
		t.row(one.Scope, one.Kid, ago(one.Created, time.Now()), strconv.FormatInt(one.Records, 10), size(one.Bytes))
	}
	return t.print(s.Out)
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
	if err := client.Post(context.Background(), "/v1/scopes/"+url.PathEscape(c.Scope)+"/rotate", nil, &made); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, made)
	}
	_, err = fmt.Fprintf(s.Out, "Scope %s has a new current key, %s. Producers use it from their next renewal on; older keys stay readable.\n", made.Scope, made.Kid)
	return err
}
