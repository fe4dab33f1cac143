package cli

import (
	"fmt"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// Fail says in one line why a command ends, and gives the exit code that err stands for. The line goes to
// stderr whether or not the command is quiet: an exit code alone explains nothing.
func Fail(env Env, err error) int {
	fmt.Fprintf(env.Stderr, "conch: %s\n", OneLine(err))
	return hold.ExitCode(err)
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
