package cli

import (
	"io"
	"log/slog"
)

// NewLogger logs to w, one line a record, as text or, where format is "json", as JSON. quiet leaves out what is
// below WARN.
//
// Every line of text is safe on a terminal whatever the attributes hold: the handler quotes a value with anything in
// it that is not printable, and writes that as escapes. JSON is for programs: durations are strings there as in the
// text ("1.5s"), and of what a terminal might obey only the control characters are escaped.
func NewLogger(w io.Writer, quiet bool, format string) *slog.Logger {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	if format == logJSON {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: readable}))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// readable writes durations as people do; slog's JSON has them as nanoseconds without saying so.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}
