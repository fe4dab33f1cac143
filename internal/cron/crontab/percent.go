package crontab

import (
	"errors"
	"strings"
)

// percent parts a command from its standard input, at the first % that no backslash escapes.
func percent(text string) (script, stdin string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '%':
			return b.String(), input(text[i+1:]), nil
		case c == '\\' && i+1 < len(text):
			i++
			switch text[i] {
			case '%':
				b.WriteByte('%')
			case '\\':
				return "", "", errors.New(`crons disagree on \\: some hand one backslash to the shell, some two: want the command in a file of its own`)
			default:
				b.WriteByte('\\')
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", nil
}

// input is what cron writes to the command: each % is a line end, each \% a %. A last line that has no end gets one.
func input(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '%':
			b.WriteByte('\n')
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '%':
			b.WriteByte('%')
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	if s := b.String(); s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return b.String() + "\n"
}
