package commandline

import (
	"context"
	"io"
	"log/slog"
)

// NewLog gives the log of a program that serves, in the form (text or json) and from the level that its configuration names.
func NewLog(w io.Writer, format, level string) *slog.Logger {
	var from slog.Level
	if err := from.UnmarshalText([]byte(level)); err != nil {
		from = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: from}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// UntilClosed ends a context when nothing can be read any more, so that a program never outlives the one that started it.
func UntilClosed(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}
