// The sidecar with its CPU profile written at the end: -profile DIR.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/server"
)

// command gives how a sidecar is started: the program, or this one that profiles it.
func (b *bench) command(file string) (name string, arguments []string) {
	if b.profile == "" {
		return program, []string{"run", "--config", file, "--json", "--until-stdin-closes"}
	}
	return os.Args[0], []string{"profiled", file, filepath.Join(b.profile, filepath.Base(file)+".pprof")}
}

// runProfiled runs a sidecar until standard input ends.
func runProfiled(file, to string) (err error) {
	cfg, err := config.Read(file)
	if err != nil {
		return err
	}
	out, err := os.Create(to) // #nosec G304 G703 -- the caller's own
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := server.Open(ctx, cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(s.Addresses()); err != nil {
		return err
	}
	return s.Run(ctx)
}
