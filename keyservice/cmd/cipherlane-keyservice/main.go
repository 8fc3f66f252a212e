// Command cipherlane-keyservice gives data keys to Kafka clients under a policy. This file holds the command line; what
// the service does is in internal/.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/server"
)

const about = `Gives data keys to Kafka producers and consumers, as a policy file allows, over mutual TLS, and records
every key that it gives out.

To try it on this machine:  cipherlane-keyservice dev
In production:              cipherlane-keyservice init --config FILE, once, then
                            cipherlane-keyservice serve --config FILE`

type commands struct {
	Serve   serveCommand   `cmd:"" help:"Serve, as a configuration file says."`
	Init    initCommand    `cmd:"" help:"Make a new, empty key store and its KEK where the configuration file says. Done once."`
	Dev     devCommand     `cmd:"" help:"Serve for development: makes a CA, certificates, an example policy and a store in one folder."`
	Version versionCommand `cmd:"" help:"Show the version."`
}

func main() {
	os.Exit(run(os.Args[1:], commandline.Standard()))
}

func run(args []string, s *commandline.Streams) int {
	return commandline.Run(commandline.Program{Name: "cipherlane-keyservice", About: about}, &commands{}, args, s)
}

// runServer serves until a signal ends it; ready is called once it listens.
func runServer(ctx context.Context, cfg config.Config, s *commandline.Streams, ready func(server.Addresses) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	opened, err := server.Open(cfg, commandline.NewLog(s.Err, cfg.Log.Format, cfg.Log.Level))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- opened.Run(ctx, reload) }()
	if err := ready(opened.Addresses()); err != nil {
		cancel()
		return errors.Join(err, <-done)
	}
	return <-done
}

type versionCommand struct{}

// Run shows the version.
func (versionCommand) Run(s *commandline.Streams) error {
	return commandline.PrintVersion(s, "cipherlane-keyservice")
}
