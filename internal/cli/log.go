package cli

import (
	"io"
	"log/slog"
)

// NewLogger logs to w as text, one line a record. quiet leaves out what is below WARN.
//
// Every line is safe on a terminal whatever the attributes hold: the handler quotes a value with anything in
// it that is not printable, and writes that as escapes.
func NewLogger(w io.Writer, quiet bool) *slog.Logger {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
