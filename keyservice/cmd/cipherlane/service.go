// The commands about the service: status, policy, leases, revocations.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
)

type statusCommand struct{}

var errNotReady = errors.New("the key service is not ready")

// Run shows how the service is; it fails when that is not ready.
func (statusCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	var status operator.Status
	if err := client.Get(context.Background(), "/v1/status", nil, &status); err != nil {
		return err
	}
	if g.JSON {
		err = printJSON(s.Out, status)
	} else {
		err = printStatus(s.Out, client.Address(), status)
	}
	if err == nil && !status.Ready {
		return errNotReady
	}
	return err
}

func printStatus(out io.Writer, address string, status operator.Status) error {
	now := time.Now()
	t := newTable("key service", fmt.Sprintf("%s at %s, version %s, started %s", status.Instance, address, status.Version, ago(status.Started, now)))
	t.row("ready", ready(operator.Part{Ready: status.Ready, Detail: status.Detail}))
	t.row("store", ready(status.Store))
	t.row("audit", ready(status.Audit))
	t.row("policy", fmt.Sprintf("loaded %s, SHA-256 %s", ago(status.Policy.Loaded, now), status.Policy.Digest))
	t.row("revocations", fmt.Sprintf("%d, read %ds ago", status.Revocations.Count, status.Revocations.Age))
	t.row("leases", strconv.Itoa(status.Leases))
	return t.print(out)
}

func ready(p operator.Part) string {
	text := map[bool]string{true: "yes", false: "NO"}[p.Ready]
	if p.Backend != "" {
		text += ", " + p.Backend
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	return text
}

type policyCommands struct {
	Show    policyShow           `cmd:"" help:"Show the policy in force, as the key service read it."`
	Test    policyTestCommand    `cmd:"" help:"Try a policy file on a table of who may what, when; exit code 1 if a case differs."`
	Explain policyExplainCommand `cmd:"" help:"Say which rule of a policy file decides, and why."`
}

type policyShow struct{}

// Run shows the policy.
func (policyShow) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	var policy operator.Policy
	if err := client.Get(context.Background(), "/v1/policy", nil, &policy); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, policy)
	}
	_, err = fmt.Fprintf(s.Out, "# loaded %s, %d rules for topics, %d grants, SHA-256 %s\n%s", stamp(policy.Loaded), policy.Topics, policy.Grants, policy.Digest, policy.Text)
	return err
}

type leasesCommand struct {
	Principal string `placeholder:"NAME" help:"Only those of this principal."`
	Scope     string `placeholder:"SCOPE" help:"Only those of this scope."`
}

// Run lists leases.
func (c *leasesCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	leases, err := client.Leases(context.Background(), c.Principal, c.Scope)
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, leases)
	}
	now, t := time.Now(), newTable("PRINCIPAL", "SCOPE", "ACTION", "GRANTED", "RENEWED", "ENDS IN")
	for _, l := range leases.Leases {
		t.row(l.Principal, l.Scope, l.Action, ago(l.Granted, now), fmt.Sprintf("%d times", l.Renewals), span(l.Expires.Sub(now)))
	}
	if err := t.print(s.Out); err != nil {
		return err
	}
	note := "These are the leases that " + leases.Instance + " gave; other replicas have their own."
	if !leases.Complete {
		note += " There were more than it remembers."
	}
	_, err = fmt.Fprintln(s.Err, note)
	return err
}

type revokeCommand struct {
	Principal string `placeholder:"NAME" help:"Every call of this principal is refused; with --scope, only its leases there."`
	Scope     string `placeholder:"SCOPE" help:"Nobody gets a key of this scope; with --principal, only that one does not."`
	Action    string `enum:"encrypt,decrypt," default:"" placeholder:"ACTION" help:"With both: only encrypt, or only decrypt."`
	Reason    string `required:"" placeholder:"TEXT" help:"Why: it stands in the audit log."`
}

// Run revokes.
func (c *revokeCommand) Run(g *Globals, s *commandline.Streams) error {
	if c.Principal == "" && c.Scope == "" {
		return errors.New("name whom to revoke: --principal, --scope, or both")
	}
	client, err := g.connect()
	if err != nil {
		return err
	}
	var made operator.Revocation
	asked := operator.Revocation{Principal: c.Principal, Scope: c.Scope, Action: c.Action, Reason: c.Reason}
	if err := client.Post(context.Background(), "/v1/revocations", asked, &made); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, made)
	}
	_, err = fmt.Fprintf(s.Out, "Revoked: %s. Clients that hold a lease lose it at their next renewal.\nTo take it back: cipherlane unrevoke %s\n", subject(made), made.ID)
	return err
}

func subject(r operator.Revocation) string {
	switch {
	case r.Scope == "":
		return "principal " + r.Principal
	case r.Principal == "":
		return "scope " + r.Scope
	case r.Action == "":
		return "principal " + r.Principal + " in scope " + r.Scope
	default:
		return "principal " + r.Principal + " in scope " + r.Scope + ", " + r.Action
	}
}

type unrevokeCommand struct {
	ID string `arg:"" name:"id" help:"The id that revoke printed, and that revocations lists."`
}

// Run takes a revocation back.
func (c *unrevokeCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	var gone operator.Revocation
	if err := client.Delete(context.Background(), "/v1/revocations/"+url.PathEscape(c.ID), &gone); err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, gone)
	}
	_, err = fmt.Fprintf(s.Out, "No longer revoked: %s.\n", subject(gone))
	return err
}

type revocationsCommand struct{}

// Run lists revocations.
func (revocationsCommand) Run(g *Globals, s *commandline.Streams) error {
	client, err := g.connect()
	if err != nil {
		return err
	}
	all, err := client.Revocations(context.Background())
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(s.Out, map[string]any{"revocations": all})
	}
	t := newTable("ID", "REVOKED", "SINCE", "BY", "REASON")
	for _, r := range all {
		t.row(r.ID, subject(r), stamp(r.Created), r.By, r.Reason)
	}
	return t.print(s.Out)
}
