// The commands serve and init.

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/server"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
)

type serveCommand struct {
	Config      string `required:"" type:"path" placeholder:"FILE" help:"Configuration file (YAML)."`
	Listen      string `placeholder:"HOST:PORT" help:"Address of the API, in place of the file's."`
	AdminListen string `placeholder:"HOST:PORT" help:"Address of health and metrics, in place of the file's."`
	Policy      string `type:"path" placeholder:"FILE" help:"Policy file, in place of the file's."`
	LogFormat   string `enum:"text,json," default:"" placeholder:"text|json" help:"Form of the log on stderr."`
	LogLevel    string `enum:"debug,info,warn,error," default:"" placeholder:"LEVEL" help:"debug, info, warn or error."`
}

// Run serves.
func (c *serveCommand) Run(s *commandline.Streams) error {
	cfg, err := config.Read(c.Config)
	if err != nil {
		return err
	}
	override(&cfg.Listen, c.Listen)
	override(&cfg.AdminListen, c.AdminListen)
	override(&cfg.Policy, c.Policy)
	override(&cfg.Log.Format, c.LogFormat)
	override(&cfg.Log.Level, c.LogLevel)
	return runServer(context.Background(), cfg, s, func(server.Addresses) error { return nil })
}

func override(target *string, flag string) {
	if flag != "" {
		*target = flag
	}
}

type initCommand struct {
	Config string `required:"" type:"path" placeholder:"FILE" help:"Configuration file (YAML); its store section says where."`
}

// Run makes an empty store.
func (c *initCommand) Run(s *commandline.Streams) error {
	cfg, err := config.Read(c.Config)
	if err != nil {
		return err
	}
	if o := cfg.Store.Vault; o != nil {
		if err := vault.Init(context.Background(), *o, commandline.NewLog(s.Err, cfg.Log.Format, cfg.Log.Level)); err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "made a key store in Vault, in %s/%s. Back Vault up by its snapshots: without it, records cannot be decrypted.\n", o.KV, o.Path)
		return err
	}
	paths := embedded.Paths{Keys: cfg.Store.Embedded.Path, KEK: cfg.Store.Embedded.KEK}
	if err := embedded.Init(paths); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "made the key store %s and its KEK %s. Back both up, apart from each other: without either, "+
		"records cannot be decrypted.\n", filepath.Clean(paths.Keys), filepath.Clean(paths.KEK))
	return err
}
