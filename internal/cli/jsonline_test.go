package cli

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAJSONLineIsSafeOnATerminalAndReadsBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain text stays", `node-2 <a&b>`, `"node-2 <a&b>"`},
		{"letters of any script stay", "Grüße, 世界 🙂", `"Grüße, 世界 🙂"`},
		{"quotes and backslashes", `say "it's" \o/`, `"say \"it's\" \\o/"`},
		{"line ends", "a\nb\r", `"a\nb\r"`},
		{"an escape sequence", "\x1b[31m", `"\u001b[31m"`},
		{"DEL and a C1 control", "\x7f\u009b", `"\u007f\u009b"`},
		{"direction override", "\u202egpj.exe", `"\u202egpj.exe"`},
		{"direction isolates and marks", "\u2066\u2069\u200f", `"\u2066\u2069\u200f"`},
		{"zero width, soft hyphen, byte order mark", "\u200b\u00ad\ufeff", `"\u200b\u00ad\ufeff"`},
		{"line separators", "\u2028\u2029", `"\u2028\u2029"`},
		{"a tag character", "\U000e0041", `"\udb40\udc41"`},
	} {
		line := string(JSONLine(tt.in))
		if line != tt.want+"\n" {
			t.Errorf("%s: got %s, want %s", tt.name, line, tt.want)
		}
		var back string
		if err := json.Unmarshal([]byte(line), &back); err != nil || back != tt.in {
			t.Errorf("%s: %s reads back as %q, %v", tt.name, line, back, err)
		}
	}
}

func FuzzJSONLine(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[2J", "\u202e", "\xff\xfe", `\u202e`, `"`, "\U0010ffff", "\ud7ff\ue000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, found := strings.CutSuffix(string(JSONLine(s)), "\n")
		if !found || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Fatalf("JSONLine(%q) = %q", s, text)
		}
		var back string
		if err := json.Unmarshal([]byte(text), &back); err != nil || utf8.ValidString(s) && back != s {
			t.Fatalf("JSONLine(%q) = %q reads back as %q, %v", s, text, back, err)
		}
	})
}
