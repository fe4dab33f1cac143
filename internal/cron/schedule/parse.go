package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/cron/nearest"
)

// macros are the words that stand for five fields.
var macros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

func macroNames() []string {
	return slices.Sorted(maps.Keys(macros))
}

// word is a piece of an expression, and where it begins: the first column is 1.
type word struct {
	text string
	col  int
}

// words cuts an expression at blanks.
func words(spec string) []word {
	var all []word
	for at := 0; at < len(spec); {
		n := strings.IndexAny(spec[at:]+" ", " \t")
		if n > 0 {
			all = append(all, word{spec[at : at+n], at + 1})
		}
		at += n + 1
	}
	return all
}

// parse reads one expression.
func parse(spec string, o Options) (rule, error) {
	if len(spec) > maxLength {
		return nil, refuse("%s has %d bytes: want %d at most", quote(spec), len(spec), maxLength)
	}
	for i, r := range spec {
		if r != '\t' && (r < ' ' || r > '~') {
			return nil, refuse("%s at column %d: want letters, digits and signs of ASCII, and blanks between them", quote(string(r)), i+1)
		}
	}
	all := words(spec)
	switch {
	case len(all) == 0:
		return nil, refuse("the expression is empty: want five fields, such as 30 2 * * *, or one of %s", strings.Join(macroNames(), " "))
	case strings.HasPrefix(all[0].text, "@"):
		return parseWord(spec, all, o)
	case strings.Contains(all[0].text, "="):
		return nil, refuse("%s at column %d: want a field; the time zone of a job is its tz", quote(all[0].text), all[0].col)
	}
	return newCalendarRule(spec, o)
}

// parseWord reads an expression that begins with @.
func parseWord(spec string, all []word, o Options) (rule, error) {
	name, args := all[0], all[1:]
	switch name.text {
	case "@every":
		return parseEvery(args)
	case "@at":
		return parseAt(args, o)
	case "@reboot":
		return nil, refuse("@reboot at column %d: a start of a host is no moment in time; want @every, @at, @manual or one of %s",
			name.col, strings.Join(macroNames(), " "))
	}
	if _, known := macros[name.text]; !known && name.text != "@manual" {
		names := append(macroNames(), "@every", "@at", "@manual")
		return nil, refuse("%s at column %d: want one of %s%s", quote(name.text), name.col, strings.Join(names, " "), nearest.Hint(nearest.Name(name.text, names)))
	}
	if len(args) > 0 {
		return nil, refuse("%s at column %d: want nothing after %s", quote(args[0].text), args[0].col, name.text)
	}
	if name.text == "@manual" {
		return manual{}, nil
	}
	o.Seconds = false
	return newCalendarRule(macros[name.text], o)
}

// parseFields reads the fields of a calendar expression: six of them, always, the second first.
func parseFields(spec string, o Options) (fields [fieldCount]field, err error) {
	all := words(spec)
	first := 1
	if o.Seconds {
		first = 0
	}
	if want := fieldCount - first; len(all) != want {
		hint := ""
		switch {
		case len(all) == fieldCount && first == 1:
			hint = "; a field for the second has to be asked for with seconds"
		case len(all) == fieldCount-1 && first == 0:
			hint = "; with seconds the first field is the second, such as 0"
		}
		return fields, refuse("%s has %s: want %d, %s%s", quote(spec), count(len(all), "field"), want, fieldNames(first), hint)
	}
	fields[second] = field{bits: 1}
	for i, w := range all {
		if fields[first+i], err = parseField(first+i, w, o.Name); err != nil {
			return fields, err
		}
	}
	return fields, nil
}

// refuse makes an error about an expression.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrSpec}, args...)...)
}

// shown is how many bytes of what was typed are repeated in an error.
const shown = 40

// quote is what was typed, safe to print whatever it is, and short.
func quote(s string) string {
	if len(s) > shown {
		return strconv.QuoteToASCII(s[:shown]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
