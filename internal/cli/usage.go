package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/hold"
)

// shown is how many bytes of what the user typed are repeated in an error.
const shown = 60

// Usagef is an error of the user's: exit code 64. Its text is one line.
func Usagef(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{hold.ErrUsage}, args...)...)
}

// Quote is what the user typed, safe to print, and short.
func Quote(s string) string { return `"` + hold.EscapeCut(s, shown) + `"` }

// badValue says which value of where (the flag itself, or a variable that stands in for it) is not
// accepted, and what is.
func badValue(where string, f *pflag.Flag, value string, err error) error {
	shown := Quote(value)
	if v, ok := f.Value.(interface{ Redact(string) string }); ok {
		shown = Quote(v.Redact(value))
	}
	if v, ok := f.Value.(interface{ Quote(string) string }); ok {
		shown = v.Quote(value)
	}
	return Usagef("%s %s: %w", where, shown, reason(f, err))
}

// FlagError turns what the flag parser says into one line that names the flag, the value and what is
// accepted, with a hint where a flag of nearly that name exists. It is cobra's FlagErrorFunc.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			return Usagef("unknown flag %s; a command and its own flags go after --", Quote("-"+short))
		}
		return Usagef("unknown flag %s%s", Quote("--"+name), near(cmd.Flags(), name))
	case errors.As(err, &missing):
		return Usagef("--%s: a value is missing: want %s", missing.GetFlag().Name, wanted(missing.GetFlag()))
	case errors.As(err, &invalid):
		return badValue("--"+invalid.GetFlag().Name, invalid.GetFlag(), invalid.GetValue(), invalid.Unwrap())
	case errors.As(err, &syntax):
		return Usagef("bad flag %s", Quote(syntax.GetSpecifiedFlag()))
	}
	return Usagef("%s", hold.Escape(err.Error()))
}

// wanted says what a flag accepts.
func wanted(f *pflag.Flag) string {
	if v, ok := f.Value.(interface{ Accepts() string }); ok {
		return v.Accepts()
	}
	if f.Value.Type() == "bool" {
		return "true or false"
	}
	return "a " + f.Value.Type()
}

// reason is why a flag does not accept a value: in the words of our own values, else what it accepts.
func reason(f *pflag.Flag, err error) error {
	if _, ours := f.Value.(interface{ Accepts() string }); ours {
		return err
	}
	return errors.New("want " + wanted(f))
}

// near is a hint at the flag of nearly that name.
func near(flags *pflag.FlagSet, name string) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	best := Near(name, names)
	if best == "" {
		return ""
	}
	return "; did you mean --" + best + "?"
}

// Near gives the one of names that is at most two letters away from name, or that begins so; "" where none is.
func Near(name string, names []string) string {
	best, least := "", 3
	for _, one := range names {
		d := distance(one, name)
		if len(name) > 2 && strings.HasPrefix(one, name) {
			d = 1
		}
		if d < least {
			best, least = one, d
		}
	}
	return best
}

// distance is how many letters have to be changed, put in or taken out to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
