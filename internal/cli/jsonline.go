package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSONLine is v as one line of JSON, with its line end. Whatever the texts in it hold, the line is safe on a
// terminal: what is not printable (escape sequences, direction overrides, invisible characters) is written
// as \u escapes. Unlike hold.Escape this is JSON's own way, so a reader gets each text exactly as it was; one that
// prints a text it decoded has to escape it itself.
//
// v has to be of types that encode.
func JSONLine(v any) []byte {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // into memory, of types that encode

	// Outside of its strings JSON is plain ASCII, so whatever has to be escaped stands in a string.
	line := make([]byte, 0, raw.Len())
	for rest := raw.Bytes(); len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == '\n' || strconv.IsPrint(r):
			line = append(line, rest[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			line = fmt.Appendf(line, `\u%04x\u%04x`, high, low)
		default:
			line = fmt.Appendf(line, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	return line
}
