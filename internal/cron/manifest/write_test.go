package manifest_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/manifest"
)

// harmless fails where a line would do something to a terminal.
func harmless(t rapid.TB, line string) {
	t.Helper()
	if strings.ContainsFunc(line, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Fatalf("%q", line)
	}
}

// comesBack writes a job in YAML and in JSON, and reads it again.
func comesBack(t rapid.TB, name string, j *job.Job) {
	t.Helper()
	text := manifest.YAML(name, j)
	for line := range strings.Lines(string(text)) {
		harmless(t, strings.TrimSuffix(line, "\n"))
	}
	for file, text := range map[string][]byte{"a.yaml": text, "a.json": manifest.JSON(name, j)} {
		r, err := manifest.NewReader()
		if err != nil {
			t.Fatalf("%v", err)
		}
		r.Read(file, text)
		if len(r.Faults) > 0 || len(r.Entries) != 1 {
			t.Fatalf("%s: %d jobs, faults %v", text, len(r.Entries), r.Faults)
		}
		if e := r.Entries[0]; e.Name != name || string(e.Job.Encode()) != string(j.Encode()) {
			t.Fatalf("%s\nis read as %s %s\nand was %s %s", text, e.Name, e.Job.Encode(), name, j.Encode())
		}
	}
}

func TestWhatIsWrittenIsReadAsItWas(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"a", " ", "\n", "\t", ":", "# ", "- ", "'", `"`, "\\", "\u202e", "\u00a0", "\U0001f600", "\U000e0001", "\u2028", "\ufeff", "~", "yes", "0x1", "|", "\r", "\x1b", "é", "*", "&", "%", "---", "..."})
	words := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 0, 8).Draw(t, "words"), "") })
	text := rapid.OneOf(words, rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }))
	rapid.Check(t, func(t *rapid.T) {
		j := &job.Job{
			Schedule: rapid.SampledFrom([]job.Strings{{"@daily"}, {"* * * * *"}, {"*/5 * * * *", "@hourly"}}).Draw(t, "schedule"),
			Cmd:      append([]string{"x" + text.Draw(t, "arg")}, rapid.SliceOfN(text, 0, 3).Draw(t, "args")...),
			Stdin:    text.Draw(t, "stdin"), Description: text.Draw(t, "description"),
			Env:    map[string]job.EnvValue{"A": {Value: text.Draw(t, "A")}, "B": {File: "/" + text.Draw(t, "B")}},
			Labels: rapid.SampledFrom([]map[string]string{nil, {"on": "off", "0": "1"}}).Draw(t, "labels"),
			Retry:  &job.Retry{Max: 3, Factor: rapid.Float64Range(1, 100).Draw(t, "factor"), ExitCodes: []int{1, 75}},
		}
		if rapid.Bool().Draw(t, "is a script") {
			j.Cmd, j.Script = nil, "x"+text.Draw(t, "script")
		}
		if err := j.Validate("job"); err != nil {
			t.Fatalf("%v", err)
		}
		comesBack(t, "job", j)
	})
}

func TestYAMLIsAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 14, 2, 30, 0, 0, time.UTC)
	j := &job.Job{
		Schedule: job.Strings{"30 2 * * *"}, Seconds: false, Script: "set -e\nbackup --all\n", Umask: "0022", Env: map[string]job.EnvValue{"A": {Value: "1"}, "B": {File: "/b"}},
		Labels: map[string]string{"team": "on\u202ecall"}, Retry: &job.Retry{Max: 2, ExitCodes: []int{75}}, AddedBy: "a@b", AddedAt: &at, ScheduleSince: &at, ResumedAt: &at,
		Paused: &job.Paused{Why: "disk"},
	}
	const want = `name: backup
schedule: 30 2 * * *
script: |
  set -e
  backup --all
env:
  A: "1"
  B:
    file: /b
umask: "0022"
retry:
  max: 2
  exit_codes: [75]
labels:
  team: "on\u202Ecall"
paused:
  why: disk
`
	if got := string(manifest.YAML("backup", manifest.Authored(j))); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if j.AddedBy == "" || j.AddedAt == nil {
		t.Error("the job itself was changed")
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	lines := func(s string) []string { return strings.Split(s, "") }
	for _, tt := range []struct{ from, to, want string }{
		{"abc", "abc", ""},
		{"", "", ""},
		{"abcdefghij", "abcdeXghij", "--- x\n+++ y\n@@ -3,7 +3,7 @@\n c\n d\n e\n-f\n+X\n g\n h\n i\n"},
		{"", "ab", "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"ab", "", "--- x\n+++ y\n@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"a23456789b23456789c", "A23456789b23456789C", "--- x\n+++ y\n@@ -1,4 +1,4 @@\n-a\n+A\n 2\n 3\n 4\n@@ -16,4 +16,4 @@\n 7\n 8\n 9\n-c\n+C\n"},
		{"1a23456b7", "1A23456B7", "--- x\n+++ y\n@@ -1,9 +1,9 @@\n 1\n-a\n+A\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n 7\n"},
		{"abcabba", "cbabac", "--- x\n+++ y\n@@ -1,7 +1,6 @@\n-a\n-b\n c\n-a\n b\n+a\n b\n a\n+c\n"},
	} {
		from, to := lines(tt.from), lines(tt.to)
		if got := manifest.Diff("x", "y", from, to); got != tt.want {
			t.Errorf("%q to %q:\n%swant\n%s", tt.from, tt.to, got, tt.want)
		}
	}
}

// TestDiffTurnsOneIntoTheOther, by patching.
func TestDiffTurnsOneIntoTheOther(t *testing.T) {
	t.Parallel()
	text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 30)
	rapid.Check(t, func(t *rapid.T) {
		from, to := text.Draw(t, "from"), text.Draw(t, "to")
		if got := patch(t, from, manifest.Diff("x", "y", from, to)); !slices.Equal(got, to) {
			t.Fatalf("%v becomes %v, not %v", from, got, to)
		}
	})
}

// TestDiffOfMuchIsBounded: what would cost too much is shown as a whole.
func TestDiffOfMuchIsBounded(t *testing.T) {
	t.Parallel()
	from, to := make([]string, 40_000), make([]string, 40_000)
	for i := range from {
		from[i], to[i] = strconv.Itoa(i), strconv.Itoa(-i)
	}
	if got := manifest.Diff("x", "y", from, to); strings.Count(got, "\n") != 2+1+1+2*39_999 {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}

// patch applies a unified diff.
func patch(t rapid.TB, from []string, diff string) (to []string) {
	at := 0
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		case strings.HasPrefix(line, "@@ -"):
			begin, _, _ := strings.Cut(line[len("@@ -"):], " ")
			first, count, _ := strings.Cut(begin, ",")
			n, err := strconv.Atoi(first)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if count != "0" {
				n--
			}
			to = append(to, from[at:n]...)
			at = n
		case line[0] == '+':
			to = append(to, line[1:])
		default:
			if from[at] != line[1:] {
				t.Fatalf("line %d is %q, and the diff has %q", at, from[at], line)
			}
			if line[0] == ' ' {
				to = append(to, from[at])
			}
			at++
		}
	}
	return append(to, from[at:]...)
}
