// The commands about who is known by what: bootstrap tokens, and the CA's rollover.

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
)

type tokenCommands struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token for a principal. It is shown once, and good for one certificate."`
}

type tokenCreateCommand struct {
	Principal string        `arg:"" help:"For whom: a SPIFFE id or a common name."`
	ExpiresIn time.Duration `default:"1h" placeholder:"TIME" help:"How long it can be used, up to 168h (default: ${default})."`
}

// Run makes a token.
func (c *tokenCreateCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	var made operator.Token
	request := map[string]any{"principal": c.Principal, "expires_in": int64(c.ExpiresIn / time.Second)}
	if err := client.Post(context.Background(), "/v1/tokens", request, &made); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, made)
	}
	_, err = fmt.Fprintf(s.Out, "%s\n\nGood once, within %s, for a certificate for %s: POST /v1/certificate with Authorization: Bearer. It is not shown again.\n",
		made.Token, span(time.Duration(made.ExpiresIn)*time.Second), made.Principal)
	return err
}

type caCommands struct {
	Begin  caBeginCommand  `cmd:"" help:"Make the next CA. It is trusted from now on, and signs nothing yet."`
	Finish caFinishCommand `cmd:"" help:"Let the next CA sign. The one before is trusted until its last certificate has ended."`
}

type caBeginCommand struct{}

// Run begins a rollover.
func (caBeginCommand) Run(g *Globals, s *commandline.Streams) error {
	return rollCA(g, s, "begin", nil, "The next CA is trusted by the key service and told with every certificate. Bring these to your brokers; finish in eight days.")
}

type caFinishCommand struct {
	Force bool `help:"Do it before everybody had time to learn of the next CA."`
}

// Run finishes a rollover.
func (c *caFinishCommand) Run(g *Globals, s *commandline.Streams) error {
	return rollCA(g, s, "finish", map[string]any{"force": c.Force}, "The first of these CAs signs from now on. The other one is trusted for eight days more.")
}

func rollCA(g *Globals, s *commandline.Streams, step string, request any, text string) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	var cas operator.CAs
	if err := client.Post(context.Background(), "/v1/ca/"+step, request, &cas); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, cas)
	}
	_, err = fmt.Fprintf(s.Out, "%s\n\n%s\n", text, strings.TrimSpace(cas.PEM))
	return err
}
