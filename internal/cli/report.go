package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// logJSON is the log format in which every line on stderr is an object.
const logJSON = "json"

// Fail says in one line why a command ends, and gives the exit code that err stands for. The line goes to
// stderr whether or not the command is quiet: an exit code alone explains nothing.
func Fail(env Env, format string, err error) int {
	code := hold.ExitCode(err)
	Say(env, format, slog.LevelError, OneLine(err), slog.Int("code", code))
	return code
}

// Say writes one line for people on stderr: text, behind the program's name; or a line of the log where that is
// JSON, so that whoever collects it meets nothing else. text has to be safe on a terminal.
func Say(env Env, format string, level slog.Level, text string, attrs ...any) {
	if format == logJSON {
		NewLogger(env.Stderr, false, format).Log(context.Background(), level, text, attrs...)
		return
	}
	fmt.Fprintf(env.Stderr, "%s: %s\n", cmp.Or(env.Program, "conch"), text)
}

// Print writes an answer to stdout, all at once: half an answer is worse than none.
func Print(stdout io.Writer, answer []byte) error {
	if _, err := stdout.Write(answer); err != nil {
		return fmt.Errorf("%w: %w", hold.ErrUnprinted, WithoutPath(err))
	}
	return nil
}

// OneLine is the text of err as one line that is safe on a terminal. What callers escaped already stays as it
// is: there is nothing left in it to escape but backslashes, which are kept.
func OneLine(err error) string {
	text := err.Error()
	if strings.Contains(text, `\`) {
		// Escape doubles backslashes; the escapes that are in the text shall not be escaped again.
		parts := strings.Split(text, `\`)
		for i, p := range parts {
			parts[i] = hold.Escape(p)
		}
		return strings.Join(parts, `\`)
	}
	return hold.Escape(text)
}
