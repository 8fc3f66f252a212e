package commandline

import (
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
