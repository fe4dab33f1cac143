package command

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// nasty is what a terminal, a reader of lines and a reader of text must not meet.
const nasty = "\x1b[2J\x1b]0;title\x07\u009b31m\u202egpj.exe\u2066\u200b\x7f\u2028\r\nsecond line\x00"

// hostileValues are what somebody may put where a holder or a record is expected.
func hostileValues() map[string]string {
	text, _ := json.Marshal(nasty)
	holder := `{"host":` + string(text) + `,"pid":7,"started":"2026-01-01T00:00:00Z","cmd":` + string(text) + `,"state":` + string(text) + `}`
	return map[string]string{
		"empty":                  "",
		"escapes and overrides":  nasty,
		"a megabyte":             strings.Repeat("x", 1<<20),
		"a megabyte of escapes":  strings.Repeat("\x1b[2J", 1<<18),
		"no UTF-8":               "\xff\xfe\xc3(\xed\xa0\x80",
		"no JSON":                `{"host":"a",`,
		"null":                   "null",
		"a list":                 "[]",
		"a number":               "1e400",
		"deep nesting":           strings.Repeat("[", 20_000),
		"a mark before it":       "\ufeff{}",
		"half a character":       `{"host":"\ud800","pid":1,"started":"2026-01-01T00:00:00Z"}`,
		"twice the same":         `{"host":"a","host":"b","pid":1,"pid":2,"started":"2026-01-01T00:00:00Z"}`,
		"a holder":               holder,
		"a holder of a megabyte": `{"host":"` + strings.Repeat("y", 1<<20) + `","pid":1,"started":"2026-01-01T00:00:00Z"}`,
		"odd numbers":            `{"host":"a","pid":-1,"started":"9999-99-99"}`,
		"an open record":         `{"lease":"7b","n":1,"ttl":10,"term_ms":1,"holder":` + holder + `,"at":"2026-01-01T00:00:00Z"}`,
		"a record of a text":     `{"lease":"7b","n":1,"ttl":10,"holder":` + string(text) + `,"at":"2026-01-01T00:00:00Z"}`,
		"a record of no lease":   `{"lease":"0","n":-1,"ttl":10,"holder":` + holder + `,"at":"2026-01-01T00:00:00Z"}`,
		"a record for ever":      `{"lease":"7b","n":1,"ttl":9223372036854775807,"holder":` + holder + `}`,
		"a last record":          `{"rev":9,"holder":` + holder + `,"how":` + string(text) + `,"at":"2026-01-01T00:00:00Z"}`,
		"a last record of long":  `{"rev":9,"holder":` + holder + `,"how":"` + strings.Repeat("z", 1<<20) + `"}`,
	}
}

// harmless reports what is wrong with an output: something that is not printable, half a line, or very much of it.
func harmless(out string, isJSON bool) error {
	if len(out) > 64<<10 {
		return fmt.Errorf("%d bytes", len(out))
	}
	if !utf8.ValidString(out) || out != "" && !strings.HasSuffix(out, "\n") {
		return fmt.Errorf("no text, or no whole lines: %q", out)
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		for _, r := range line {
			if !unicode.IsPrint(r) {
				return fmt.Errorf("%U in %q", r, line)
			}
		}
		if strings.HasPrefix(line, "second line") || isJSON && !json.Valid([]byte(line)) {
			return fmt.Errorf("a line that is none of ours: %q", line)
		}
	}
	return nil
}

// judge looks at what a command said.
func (s *shell) judge(t *testing.T, what string) {
	t.Helper()
	if err := harmless(s.stdout.String(), strings.Contains(what, "json")); err != nil {
		t.Errorf("%s: stdout: %v", what, err)
	}
	if err := harmless(s.stderr.String(), false); err != nil {
		t.Errorf("%s: stderr: %v", what, err)
	}
}

// TestHostileValuesNeitherBreakNorInject: whatever stands in etcd, every command gives an answer of its own, with a code of its
// own, in lines of its own.
func TestHostileValuesNeitherBreakNorInject(t *testing.T) {
	t.Parallel()
	server := etcdtest.One(t)
	cli := server.Client(t)
	shellOf := func() *shell { return newShell("CONCH_ENDPOINTS="+server.Endpoint(), "CONCH_TTL=60s") }
	t.Run("values", func(t *testing.T) {
		n := 0
		for name, value := range hostileValues() {
			n++
			office := "hostile" + strconv.Itoa(n)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				facing(t, cli, shellOf, office, value)
				slotsFacing(t, cli, shellOf, office, value)
			})
		}
	})

	// Odd keys as well: names that no office can have, and what is no lease.
	for _, key := range []string{
		hold.AreaRange(hold.AreaElect) + nasty + "/7b", hold.ElectRange("odd") + nasty, hold.Root + nasty, hold.Root + "last/elect/" + nasty,
		hold.AreaRange(hold.AreaElect), hold.ElectRange("odd") + "7b",
	} {
		set(t, cli, key, nasty)
	}
	for _, key := range []string{
		hold.AreaRange(hold.AreaSema) + nasty + "/3/7b", hold.SemaRange("odd") + nasty, hold.SemaRange("odd") + "3/" + nasty, hold.SlotPrefix("odd") + "/3/" + nasty,
		hold.SemaRange("odd") + "3/7b", hold.SlotPrefix("odd") + "/2147483647/2147483646", hold.Root + "open/sema/odd/99999999999/1", coord.HostsPrefix + nasty,
	} {
		set(t, cli, key, nasty)
	}
	for want, lines := range map[int][]string{
		hold.CodeOK: {
			"__complete elect h", "__complete elect ", "__complete elect o", "elect odd --who", "elect odd --who --json", "sema odd --who",
			"sema odd --who --json", "status", "status --json", "status odd", "status odd --json", "__complete status ",
		},
		hold.CodeNo: {"doctor -o table", "doctor -o json"},
	} {
		for _, line := range lines {
			s := shellOf()
			code := s.conch(strings.Split(line, " ")...)
			s.judge(t, line)
			if code != want && !strings.HasPrefix(line, "doctor") || s.stdout.String() == "" {
				t.Errorf("%s: code %d, want %d; %q", line, code, want, s.stdout.String())
			}
		}
	}
}

// slotsFacing is facing, for the questions about a semaphore: as a candidate, a slot, and either record.
func slotsFacing(t *testing.T, cli *clientv3.Client, shellOf func() *shell, name, value string) {
	open, last := hold.SlotKeys(name, 2, 0)
	keys := []string{open.String(), last.String(), hold.SlotKey(name, 2, 0).String(), hold.SemaKey(name, 2, 0x7b).String()}
	for i, key := range keys {
		set(t, cli, key, value)
		for _, args := range []string{"--who", "--who --json"} {
			s := shellOf()
			if code := s.conch(append([]string{"sema", name}, strings.Fields(args)...)...); code != answer(i > 1) {
				t.Errorf("%s: %s: code %d", key, args, code)
			}
			s.judge(t, args)
		}
	}
	s, out := shellOf(), make(reader)
	code := s.startTo(out, "sema", name, "--watch", "--json")
	if err := harmless(out.next(t)+"\n", true); err != nil {
		t.Errorf("--watch: %v", err)
	}
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 143 {
		t.Errorf("--watch: code %d", c)
	}
}

// set puts a value by hand, without a lease.
func set(t *testing.T, cli *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := cli.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// facing lets every command meet a value: as the first in the queue, as either record, and as all of them.
func facing(t *testing.T, cli *clientv3.Client, shellOf func() *shell, office, value string) {
	key, records := hold.ElectKey(office, 0x7b).String(), settle(office)
	ask := func(want int, args ...string) {
		t.Helper()
		s := shellOf()
		if code := s.conch(append([]string{"elect", office}, args...)...); code != want {
			t.Errorf("%q: code %d, want %d; %.300q", args, code, want, s.stderr.String())
		}
		s.judge(t, strings.Join(args, " "))
	}
	watch := func(args ...string) {
		t.Helper()
		s, out := shellOf(), make(reader)
		code := s.startTo(out, append([]string{"elect", office, "--watch"}, args...)...)
		if err := harmless(out.next(t)+"\n", len(args) > 0); err != nil {
			t.Errorf("--watch %q: %v", args, err)
		}
		s.signals <- syscall.SIGTERM
		if c := wait(t, code); c != 143 {
			t.Errorf("--watch %q: code %d", args, c)
		}
		s.judge(t, "--watch")
	}

	// A vacancy, with records beside it: the first may be all there is of a hold, so it is waited out.
	set(t, cli, records.Open, value)
	set(t, cli, records.Last, value)
	ask(1, "--who")
	ask(1, "--who", "--json")
	ask(1, "--assert")
	watch()
	watch("--json")
	ask(75, "--wait", "150ms", "--", "true")
	ask(75, "--wait", "150ms", "--log-format", "json", "--", "true")

	// Somebody in front, on no lease.
	set(t, cli, key, value)
	ask(0, "--who")
	ask(0, "--who", "--json")
	ask(1, "--assert", "--pid", "999999")
	watch()
	watch("--json")
	ask(75, "--nonblock", "--", "true")
	ask(75, "--wait", "50ms", "--", "true")
	ask(75, "--campaign-after", "10ms", "--wait", "100ms", "--", "true")

	// Nothing of ours has changed what somebody else put, and with the one in front gone the office is had again.
	got, err := cli.Get(t.Context(), key)
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value {
		t.Errorf("the key in front was changed: %v", err)
	}
	for _, k := range []string{key, records.Open} {
		if _, err := cli.Delete(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	// Who gave up on a machine that was too busy may have left its key to the TTL.
	ask(0, "--wait", "1m", "--", "true")
	set(t, cli, key, value)
	set(t, cli, records.Open, value)
	set(t, cli, records.Last, value)
}
