package hold

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape makes any bytes safe to show in one line on a terminal. Printable characters stay as they are;
// everything else (control characters, escape sequences, direction overrides, invisible characters, line
// and paragraph separators, bytes that are no UTF-8) is written as a Go escape, and a backslash is
// doubled, so that two different values never look the same.
//
// It does not unmask letters that merely resemble others.
func Escape(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '"', r != '\\' && strconv.IsPrint(r):
			b.WriteString(s[:n])
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// EscapeCut is Escape of at most the first limit bytes of s, cut between characters, with "..." where
// something was left out.
func EscapeCut(s string, limit int) string {
	head := cut(s, limit)
	if len(head) == len(s) {
		return Escape(s)
	}
	return Escape(head) + "..."
}

// plain reports whether s needs no escape at all.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// cut gives at most limit bytes of s and never half a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	// A character has at most four bytes: in a run of stray continuation bytes any place is as good.
	end := limit
	for end > 0 && limit-end < utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	if !utf8.RuneStart(s[end]) {
		end = limit
	}
	return s[:end]
}
