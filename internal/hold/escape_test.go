package hold_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-coord/coord/internal/hold"
)

func TestEscapeShowsHostileTextInOneHarmlessLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain text stays", "node-2 pid 42", "node-2 pid 42"},
		{"letters of any script stay", "Grüße, 世界 🙂", "Grüße, 世界 🙂"},
		{"quotes stay", `say "it's"`, `say "it's"`},
		{"line ends", "a\nb\r\tc", `a\nb\r\tc`},
		{"NUL and DEL", "\x00\x7f", `\x00\x7f`},
		{"an escape sequence", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"a C1 control", "\u009b31m", `\u009b31m`},
		{"bytes that are no UTF-8", "a\xff\xc3", `a\xff\xc3`},
		{"the replacement character itself stays", "\uFFFD", "\uFFFD"},
		{"direction override", "\u202egpj.exe", `\u202egpj.exe`},
		{"direction isolate", "\u2066x\u2069", `\u2066x\u2069`},
		{"zero-width and soft hyphen", "a\u200bb\u00adc", `a\u200bb\u00adc`},
		{"line and paragraph separator", "\u2028\u2029", `\u2028\u2029`},
		{"a space that is none", "a\u00a0b", `a\u00a0b`},
		{"a tag character", "\U000e0041", `\U000e0041`},
		{"a backslash, so that nothing can pose as an escape", `\n`, `\\n`},
	} {
		if got := hold.Escape(tt.in); got != tt.want {
			t.Errorf("%s: Escape(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestEscapeCutNeverCutsACharacter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc..."},
		{"a世b", 3, "a..."},
		{"a世b", 4, "a世..."},
		{"世", 0, "..."},
		{"\x80\x80\x80\x80\x80\x80", 5, `\x80\x80\x80\x80\x80...`},
		{"\n\n", 1, `\n...`},
	} {
		if got := hold.EscapeCut(tt.in, tt.limit); got != tt.want {
			t.Errorf("EscapeCut(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[2J", "\u202e", "\xff\xfe", `\x41`, `"`, "\U0010ffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := hold.Escape(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Escape(%q) is no UTF-8: %q", s, got)
		}
		for _, r := range got {
			if !strconv.IsPrint(r) {
				t.Fatalf("Escape(%q) lets %U through", s, r)
			}
		}
		back, err := strconv.Unquote(`"` + strings.ReplaceAll(got, `"`, `\"`) + `"`)
		if err != nil || back != s {
			t.Fatalf("Escape(%q) = %q reads back as %q, %v", s, got, back, err)
		}
	})
}
