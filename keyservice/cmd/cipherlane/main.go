// Command cipherlane is the operator's tool. This file holds the command line; each group of commands has a file of its own.
package main

import (
	"os"

	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/release"
)

const about = `Looks after a Cipherlane key service, and looks into what it protects.

Commands that call the key service need its address and a client certificate: by flags, by the environment
(CIPHERLANE_URL, CIPHERLANE_CA, CIPHERLANE_CERTIFICATE, CIPHERLANE_KEY), or from a file (--config, CIPHERLANE_CONFIG,
or ~/.config/cipherlane/cipherlane.yaml) with the members url, ca, certificate and key.

To try it:  cipherlane-keyservice dev                                (in another terminal)
            cipherlane --config cipherlane-dev/cipherlane.yaml status

Exit codes: 0 done; 1 not done, or the check failed; 2 wrong arguments; 3 scan found what it should not.`

type commands struct {
	Globals

	Status      statusCommand             `cmd:"" group:"Key service" help:"Show whether the key service works, and what it depends on."`
	Policy      policyCommands            `cmd:"" group:"Key service" help:"Show the policy in force; try a policy file, and explain what it decides."`
	Token       tokenCommands             `cmd:"" group:"Key service" help:"Make one-time tokens, with which newcomers get their first certificate."`
	CA          caCommands                `cmd:"" name:"ca" group:"Key service" help:"Roll the key service's own CA over."`
	Leases      leasesCommand             `cmd:"" group:"Key service" help:"List who may use keys of which scope now, and until when."`
	Revoke      revokeCommand             `cmd:"" group:"Key service" help:"Take access away at once: from a principal, from a scope, or both together."`
	Unrevoke    unrevokeCommand           `cmd:"" group:"Key service" help:"Take a revocation back."`
	Revocations revocationsCommand        `cmd:"" group:"Key service" help:"List what is revoked."`
	Top         topCommand                `cmd:"" group:"Key service" help:"Show who reads and writes what through sidecars now, leases and certificates with the time left, and what was refused."`
	Scopes      scopesCommand             `cmd:"" group:"Keys" help:"List the scopes, with the current key of each."`
	Keys        keysCommand               `cmd:"" group:"Keys" help:"List the keys of a scope."`
	Rotate      rotateCommand             `cmd:"" group:"Keys" help:"Make a new data key for a scope; older keys stay readable."`
	Destroy     destroyCommand            `cmd:"" group:"Keys" help:"Destroy keys for good: what they encrypted becomes unreadable. Shows what that is, and asks."`
	Rewrap      rewrapCommand             `cmd:"" group:"Keys" help:"Change the KEKs: new versions, under which every data key is wrapped anew. Records are not touched."`
	Inspect     inspectCommand            `cmd:"" group:"Looking into" help:"Explain an envelope (an encrypted record value) field by field."`
	Scan        scanCommand               `cmd:"" group:"Looking into" help:"Read topics and count what is encrypted under which key, and what is not."`
	Audit       auditCommands             `cmd:"" group:"Looking into" help:"Check an audit log, or search it."`
	Version     versionCommand            `cmd:"" group:"This tool" help:"Show the version."`
	Completion  kongcompletion.Completion `cmd:"" group:"This tool" help:"Show how to switch on completion in bash, zsh or fish."`
}

func main() {
	os.Exit(run(os.Args[1:], commandline.Standard()))
}

func run(args []string, s *commandline.Streams) int {
	var cli commands
	program := commandline.Program{Name: "cipherlane", About: about, Completion: true, Bind: []any{&cli.Globals}}
	return commandline.Run(program, &cli, args, s)
}

type versionCommand struct{}

// Run shows the version.
func (versionCommand) Run(g *Globals, s *commandline.Streams) error {
	if g.JSON {
		return printJSON(s.Out, map[string]string{"version": release.Version, "go": commandline.GoVersion()})
	}
	return commandline.PrintVersion(s, "cipherlane")
}
