// The command dev.

package main

import (
	"context"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/dev"
	"github.com/cipherlane/cipherlane/keyservice/internal/server"
)

type devCommand struct {
	Dir              string   `type:"path" default:"cipherlane-dev" placeholder:"DIR" help:"Folder for everything; made when missing, used again when there (default: ${default})."`
	Listen           string   `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Address of the API; port 0 is a free one (default: ${default})."`
	AdminListen      string   `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Address of health and metrics (default: ${default})."`
	Policy           string   `type:"path" placeholder:"FILE" help:"Policy file, in place of the example in the folder."`
	Principal        []string `placeholder:"NAME" sep:"none" help:"One more client, besides producer, consumer, operator and stranger. May be repeated."`
	JSON             bool     `name:"json" help:"When ready, print one line of JSON in place of the text."`
	UntilStdinCloses bool     `help:"Stop when standard input ends: then it cannot outlive the program that started it."`
	LogFormat        string   `enum:"text,json," default:"" placeholder:"text|json" help:"Form of the log on stderr."`
	LogLevel         string   `enum:"debug,info,warn,error," default:"" placeholder:"LEVEL" help:"debug, info, warn or error."`
}

// Run makes the folder and serves.
func (c *devCommand) Run(s *commandline.Streams) error {
	folder, cfg, err := dev.Prepare(dev.Options{Dir: c.Dir, Policy: c.Policy, Principals: c.Principal})
	if err != nil {
		return err
	}
	cfg.Listen, cfg.AdminListen = c.Listen, c.AdminListen
	override(&cfg.Log.Format, c.LogFormat)
	override(&cfg.Log.Level, c.LogLevel)
	ctx := context.Background()
	if c.UntilStdinCloses {
		ctx = commandline.UntilClosed(ctx, s.In)
	}
	return runServer(ctx, cfg, s, func(at server.Addresses) error {
		running := dev.NewRunning(folder, at.API, at.Admin)
		if err := running.WriteOperator(); err != nil {
			return err
		}
		if c.JSON {
			return running.WriteJSON(s.Out)
		}
		return running.WriteText(s.Out)
	})
}
