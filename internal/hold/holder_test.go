package hold_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-coord/coord/internal/hold"
	"pgregory.net/rapid"
)

var started = time.Date(2026, 6, 12, 12, 15, 0, 999, time.FixedZone("two hours east", 7200))

func TestHolderIsOneLineOfJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		argv []string
		cmd  string
	}{
		{"arguments are joined by spaces", []string{"my-daemon", "--port", "8080"}, `,"cmd":"my-daemon --port 8080"`},
		{"no command when it was not to be told", nil, ""},
		{"line ends and quotes", []string{"sh", "-c", "echo \"a\"\nexit"}, `,"cmd":"sh -c echo \"a\"\nexit"`},
		{"angle brackets stay readable", []string{"a<b>&c"}, `,"cmd":"a<b>&c"`},
		{"NUL", []string{"a\x00b"}, `,"cmd":"a\u0000b"`},
		{"bytes that are no UTF-8", []string{"a\xffb"}, `,"cmd":"a` + "\uFFFD" + `b"`},
		{"an empty argument", []string{"a", "", "b"}, `,"cmd":"a  b"`},
	} {
		got := hold.NewHolder("node2", 4242, started, tt.argv).Encode()
		want := `{"host":"node2","pid":4242,"started":"2026-06-12T10:15:00Z"` + tt.cmd + `}`
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, want)
		}
	}
}

func TestHolderCommandIsCutAt256BytesBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		argv []string
		want string
	}{
		{"short enough", []string{strings.Repeat("a", 256)}, strings.Repeat("a", 256)},
		{"one byte too many", []string{strings.Repeat("a", 257)}, strings.Repeat("a", 256)},
		{"a character across the limit", []string{strings.Repeat("a", 255) + "世"}, strings.Repeat("a", 255)},
		{"the space across the limit", []string{strings.Repeat("a", 256), "b"}, strings.Repeat("a", 256)},
		{"a megabyte", []string{strings.Repeat("🙂", 1<<18), "b"}, strings.Repeat("🙂", 64)},
	} {
		if got := hold.NewHolder("h", 1, started, tt.argv).Cmd; got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, len(got), len(tt.want))
		}
	}
}

func TestAnyArgvGivesOneValidLineThatReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOf(rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 400), func(b []byte) string { return string(b) })).Draw(t, "argv")
		host := "h" + string(rapid.SliceOf(rapid.Byte()).Draw(t, "host"))
		h := hold.NewHolder(host, 7, started, argv)
		line := h.Encode()
		if strings.ContainsAny(line, "\n\r\x00") || !utf8.ValidString(line) || !json.Valid([]byte(line)) {
			t.Fatalf("not one line of JSON: %q", line)
		}
		if len(h.Cmd) > 256 {
			t.Fatalf("cmd has %d bytes", len(h.Cmd))
		}
		if back, ok := hold.DecodeHolder([]byte(line)); !ok || back != h {
			t.Fatalf("%q reads back as %+v, %v", line, back, ok)
		}
	})
}

func TestDecodeHolderBearsHostileValues(t *testing.T) {
	t.Parallel()
	const rest = `"pid":1,"started":"2026-06-12T10:15:00Z"`
	for _, tt := range []struct {
		name, value string
		ok          bool
		shown       string
	}{
		{"ours", `{"host":"a",` + rest + `,"cmd":"b"}`, true, "a pid 1 (b)"},
		{"without a command", `{"host":"a",` + rest + `}`, true, "a pid 1"},
		{"of a later version", `{"host":"a",` + rest + `,"label":{"x":[1]}}`, true, "a pid 1"},
		{"in a state that it does not know", `{"host":"a",` + rest + `,"state":"odd"}`, true, "a pid 1"},
		{"hostile text in its fields", `{"host":"\u001b[2J",` + rest + `,"cmd":"\u202e"}`, true, `\x1b[2J pid 1 (\u202e)`},
		{"a lone surrogate", `{"host":"\ud800",` + rest + `}`, true, "\uFFFD pid 1"},
		{"empty", ``, false, ``},
		{"another client's text", "node1\x1b[2J", false, `node1\x1b[2J`},
		{"null", `null`, false, `null`},
		{"a list", `[]`, false, `[]`},
		{"no host", `{` + rest + `}`, false, `{` + rest + `}`},
		{"no pid", `{"host":"a"}`, false, `{"host":"a"}`},
		{"a negative pid", `{"host":"a","pid":-1}`, false, `{"host":"a","pid":-1}`},
		{"pid 1e400", `{"host":"a","pid":1e400}`, false, `{"host":"a","pid":1e400}`},
		{"wrong types", `{"host":1,"pid":"x"}`, false, `{"host":1,"pid":"x"}`},
		{"a date that is none", `{"host":"a","pid":1,"started":"soon"}`, false, `{"host":"a","pid":1,"started":"soon"}`},
		{"something after it", `{"host":"a",` + rest + `}}`, false, `{"host":"a",` + rest + `}}`},
		{"a byte order mark", "\ufeff{}", false, `\ufeff{}`},
		{"deep nesting", strings.Repeat("[", 20000), false, strings.Repeat("[", 256) + "..."},
		{"a megabyte", strings.Repeat("x", 1<<20), false, strings.Repeat("x", 256) + "..."},
		{"a megabyte of JSON", `{"host":"a",` + rest + `,"cmd":"` + strings.Repeat("x", 1<<20) + `"}`, false,
			(`{"host":"a",` + rest + `,"cmd":"` + strings.Repeat("x", 256))[:256] + "..."},
	} {
		h, ok := hold.DecodeHolder([]byte(tt.value))
		if ok != tt.ok || h.String() != tt.shown {
			t.Errorf("%s: ok %v, shown as %q, want %v, %q", tt.name, ok, h.String(), tt.ok, tt.shown)
		}
	}
}

func FuzzDecodeHolder(f *testing.F) {
	f.Add([]byte(`{"host":"a","pid":1,"started":"2026-06-12T10:15:00Z","cmd":"b"}`))
	f.Add([]byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, value []byte) {
		h, ok := hold.DecodeHolder(value)
		shown := h.String()
		for _, r := range shown {
			if !strconv.IsPrint(r) {
				t.Fatalf("String lets %U through: %q", r, shown)
			}
		}
		if !ok {
			return
		}
		if back, ok := hold.DecodeHolder([]byte(h.Encode())); !ok || back != h {
			t.Fatalf("%+v reads back as %+v, %v", h, back, ok)
		}
	})
}

func TestAFencedHolderReadsBack(t *testing.T) {
	t.Parallel()
	h := hold.NewHolder("h", 1, started, nil)
	h.Fenced = true
	if back, ok := hold.DecodeHolder([]byte(h.Encode())); !ok || back != h || !strings.Contains(h.Encode(), `"state":"fenced"`) {
		t.Errorf("%s reads back as %+v, %v", h.Encode(), back, ok)
	}
}
