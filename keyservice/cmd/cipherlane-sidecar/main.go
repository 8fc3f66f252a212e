// Command cipherlane-sidecar carries the traffic of programs that nobody may change over mutual TLS. This file holds the command
// line; what the sidecar does is in internal/sidecar.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/server"
)

const about = `Mutual TLS for Kafka programs that nobody may change. Beside a client it takes plaintext on a loopback address and goes out
over mutual TLS; beside a broker it takes mutual TLS and goes on to the broker. Brokers' addresses are rewritten, so that
every connection passes through it.

  cipherlane-sidecar run --config FILE`

type commands struct {
	Run     runCommand     `cmd:"" help:"Run, as a configuration file says."`
	Check   checkCommand   `cmd:"" help:"Read a configuration file and say what is wrong with it."`
	Version versionCommand `cmd:"" help:"Show the version."`
}

func main() {
	os.Exit(run(os.Args[1:], commandline.Standard()))
}

func run(args []string, s *commandline.Streams) int {
	return commandline.Run(commandline.Program{Name: "cipherlane-sidecar", About: about}, &commands{}, args, s)
}

type runCommand struct {
	Config           string `required:"" type:"path" placeholder:"FILE" help:"Configuration file (YAML; spec/sidecar.md)."`
	JSON             bool   `name:"json" help:"Print one line of JSON with the addresses when ready."`
	UntilStdinCloses bool   `help:"Stop when standard input ends, so that the sidecar never outlives the program that started it."`
}

// Run serves until a signal ends it.
func (c *runCommand) Run(s *commandline.Streams) error {
	cfg, err := config.Read(c.Config)
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(collectEarly())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if c.UntilStdinCloses {
		ctx = commandline.UntilClosed(ctx, s.In)
	}
	opened, err := server.Open(ctx, cfg, commandline.NewLog(s.Err, cfg.Log.Format, cfg.Log.Level))
	if err != nil {
		return err
	}
	if c.JSON {
		if err := json.NewEncoder(s.Out).Encode(opened.Addresses()); err != nil {
			return errors.Join(err, opened.Close())
		}
	}
	return opened.Run(ctx)
}

// How much garbage there may be before it is collected: so much of what is in use, with the ballast. Alone, a sidecar then has some 5 MiB of it,
// and with hundreds of connections hardly more, where the default would keep as much garbage as there is in use.
const (
	garbagePercent = 15
	ballastSize    = 32 << 20 // bytes
)

// collectEarly leaves what the environment says as it is. The ballast that it gives counts as in use as long as it is kept: without it the collector
// would run for each MiB, and empty the pools of buffers every time, which costs a twentieth of all CPU. It is never touched, so that the system gives
// no page for it.
func collectEarly() (ballast []byte) {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(garbagePercent)
	return make([]byte, ballastSize)
}

type checkCommand struct {
	Config string `required:"" type:"path" placeholder:"FILE" help:"Configuration file."`
}

// Run reads the file.
func (c *checkCommand) Run(s *commandline.Streams) error {
	if _, err := config.Read(c.Config); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.Out, "the configuration is valid")
	return err
}

type versionCommand struct{}

// Run shows the version.
func (versionCommand) Run(s *commandline.Streams) error {
	return commandline.PrintVersion(s, "cipherlane-sidecar")
}
