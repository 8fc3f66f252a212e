// Command cipherlane-keyservice gives data keys to Kafka clients under a policy. This file holds the command line; what
// the service does is in internal/.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/server"
)

const about = `Gives data keys to Kafka producers and consumers, as a policy file allows, over mutual TLS, and records
every key that it gives out.

To try it on this machine:  cipherlane-keyservice dev
In production:              cipherlane-keyservice init --config FILE, once, then
                            cipherlane-keyservice serve --config FILE`

// version is set when a release is linked.
var version = "0.1.0-dev"

type commands struct {
	Serve   serveCommand   `cmd:"" help:"Serve, as a configuration file says."`
	Init    initCommand    `cmd:"" help:"Make a new, empty key store and its KEK where the configuration file says. Done once."`
	Dev     devCommand     `cmd:"" help:"Serve for development: makes a CA, certificates, an example policy and a store in one folder."`
	Version versionCommand `cmd:"" help:"Show the version."`
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var cli commands
	code := -1
	parser, err := kong.New(&cli, kong.Name("cipherlane-keyservice"), kong.Description(about), kong.UsageOnError(),
		kong.Writers(stdout, stderr), kong.Exit(func(c int) { code = c }),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110, Compact: true}))
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 2
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // --help
		return code
	}
	if err != nil {
		parser.FatalIfErrorf(err)
		return 2
	}
	if err := parsed.Run(&streams{stdin, stdout, stderr}); err != nil {
		_, _ = fmt.Fprintf(stderr, "cipherlane-keyservice: %v\n", err)
		return 1
	}
	return 0
}

type streams struct {
	in       io.Reader
	out, err io.Writer
}

func newLog(w io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// runServer serves until a signal ends it; ready is called once it listens.
func runServer(ctx context.Context, cfg config.Config, s *streams, ready func(server.Addresses) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	opened, err := server.Open(cfg, newLog(s.err, cfg.Log))
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
func (versionCommand) Run(s *streams) error {
	goVersion := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
	}
	_, err := fmt.Fprintf(s.out, "cipherlane-keyservice %s (%s)\n", version, goVersion)
	return err
}
