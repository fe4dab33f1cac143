package crontab_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-coord/coord/internal/cron/crontab"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/schedule"
)

func TestACrontabThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := crontab.Parse(iotest.ErrReader(broken), crontab.Options{}); !errors.Is(err, broken) {
		t.Errorf("a broken reader: %v", err)
	}
	large := strings.Repeat("#", crontab.MaxSize)
	if _, err := crontab.Parse(strings.NewReader(large), crontab.Options{}); err != nil {
		t.Errorf("the largest one: %v", err)
	}
	if _, err := crontab.Parse(io.MultiReader(strings.NewReader(large), strings.NewReader("#")), crontab.Options{}); !errors.Is(err, crontab.ErrSize) {
		t.Errorf("a larger one: %v", err)
	}
	if _, err := crontab.Parse(strings.NewReader(""), crontab.Options{TZ: "Local"}); !errors.Is(err, schedule.ErrZone) {
		t.Errorf("the zone Local: %v", err)
	}
}

func TestEveryLineIsInTheReport(t *testing.T) {
	t.Parallel()
	r := read(t, "# a\n\n  \t\nA=b\n@reboot x\n@daily x\n\n", crontab.Options{})
	want := []crontab.Kind{crontab.KindComment, crontab.KindBlank, crontab.KindBlank, crontab.KindVariable, crontab.KindRefused, crontab.KindJob, crontab.KindBlank}
	var text strings.Builder
	for i, l := range r.Lines {
		if l.Number != i+1 || i >= len(want) || l.Kind != want[i] {
			t.Errorf("line %d is %d, %s", i+1, l.Number, l.Kind)
		}
		text.WriteString(l.Text + "\n")
	}
	if text.String() != "# a\n\n  \t\nA=b\n@reboot x\n@daily x\n\n" {
		t.Errorf("the lines are %q", text.String())
	}
	if jobs, refused := r.Jobs(), r.Refused(); len(jobs) != 1 || jobs[0].Number != 6 || len(refused) != 1 || refused[0].Number != 5 {
		t.Errorf("jobs %v, refused %v", jobs, refused)
	}
}

func TestACrontabWithoutJobsHasNothingToNote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "A=b\n", "@reboot x\n"} {
		if r := read(t, text, crontab.Options{}); len(r.Notes) > 0 {
			t.Errorf("%q: %v", text, r.Notes)
		}
	}
}

func TestALastLineWithoutAnEndIsNoted(t *testing.T) {
	t.Parallel()
	const note = "the last line has no line end: many crons do not run it"
	for text, want := range map[string]int{"@daily x": 1, "@daily x\n": 0, "@daily x\n@daily y": 1} {
		r, got := read(t, text, crontab.Options{}), 0
		for _, l := range r.Jobs() {
			for _, n := range l.Notes {
				if n == note {
					got++
				}
			}
		}
		last := r.Lines[len(r.Lines)-1]
		if got != want || want == 1 && len(last.Notes) != 1 {
			t.Errorf("%q: noted %d times, want %d", text, got, want)
		}
	}
}

func TestRunsGetTheTimeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	hour, err := job.ParseDuration("1h")
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, "@daily x\n", crontab.Options{RunTTL: hour})
	if got := r.Jobs()[0].Job.RunTTL; got != hour || r.Notes[1] != "a run is ended after 1h (run_ttl); cron ends none" {
		t.Errorf("run_ttl %s, %s", got, r.Notes[1])
	}
}

// TestALineAtTheEndRenamesNone: what was imported once is found again under the same names.
func TestALineAtTheEndRenamesNone(t *testing.T) {
	t.Parallel()
	const text = "@daily backup\n@hourly backup\n@daily sync\n"
	before, after := read(t, text, crontab.Options{}), read(t, text+"@weekly backup\n@weekly sync\n", crontab.Options{})
	for i, l := range before.Lines {
		if after.Lines[i].Name != l.Name {
			t.Errorf("%s became %s", l.Name, after.Lines[i].Name)
		}
	}
}

func TestBytesThatAreNoTextAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"@daily x\r\n":       "it ends in a carriage return, which cron hands to the shell: want line ends of Unix",
		"A=b\r\n":            "it ends in a carriage return, which cron hands to the shell: want line ends of Unix",
		"@daily x\x1b[2J\n":  "it holds a control character",
		"@daily x\x00\n":     "it holds a control character",
		"@daily x\x7f\n":     "it holds a control character",
		"@daily x\xfc\n":     "it is not UTF-8",
		"A=\xfc\n":           "it is not UTF-8",
		"@daily x\ty\n":      "",
		"# \xfc \x1b[2J\r\n": "",
	} {
		if got := read(t, text, crontab.Options{}).Lines[0].Reason; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLongLinesHaveShortReasons(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("5", 5000)
	for text, want := range map[string]string{
		long + "/" + long + " * * * * x": `minute "5555555555555555555555555555555555555555..." has 10001 bytes: want 200 at most`,
		"@" + long + " x":                `"@555555555555555555555555555555555555555...": want five fields, or one of @yearly @annually @monthly @weekly @daily @midnight @hourly`,
		"@daily -" + long:                `the command begins with "-555555555555555555555555555555555555555...": flags of BSD crons are not known: want the command alone`,
	} {
		if got := read(t, text+"\n", crontab.Options{}).Lines[0].Reason; got != want {
			t.Errorf("%.20s: %.300s\nwant %s", text, got, want)
		}
	}
}

func TestJobsDoNotShareTheirEnvironment(t *testing.T) {
	t.Parallel()
	jobs := read(t, "A=1\n@daily x\nA=2\n@daily y\n", crontab.Options{}).Jobs()
	if first, second := jobs[0].Job.Env["A"].Value, jobs[1].Job.Env["A"].Value; first != "1" || second != "2" {
		t.Errorf("A is %s and %s", first, second)
	}
}

// FuzzParse: whatever is read, each line is in the report, each job is valid and has a name of its own, and what is said is safe to print.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "#", "A=b\n@daily x", "\"A\" = 'b'\n*/5 * * * * root x % y \\% z", "@reboot x", "0~9 5/2 22-4 H L x", "SHELL=x\n@daily x",
		"CRON_TZ=\x1b[2J\n@daily x", "RANDOM_DELAY=-1", "-* * * * * x", "* * * * * \\\\", "* * * * * ../..", "\xff", "a\r\n", "=", "'=", "0 0 12 * * ?",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, system bool) {
		r, err := crontab.Parse(strings.NewReader(text), crontab.Options{System: system})
		if err != nil {
			t.Fatal(err)
		}
		names, lines := map[string]bool{}, []string{}
		for _, l := range r.Lines {
			lines = append(lines, l.Text)
			if (l.Kind == crontab.KindJob) != (l.Job != nil) || (l.Kind == crontab.KindRefused) != (l.Reason != "") {
				t.Fatalf("%q: %+v", text, l)
			}
			for _, said := range append(l.Notes, l.Reason) {
				if len(said) > 1000 || strings.ContainsFunc(said, func(r rune) bool { return r < ' ' || r == 0x7f }) {
					t.Fatalf("%q: not one harmless line: %q", text, said)
				}
			}
			if l.Job == nil {
				continue
			}
			if err := l.Job.Validate(l.Name); err != nil || names[l.Name] {
				t.Fatalf("%q: job %q: %v", text, l.Name, err)
			}
			names[l.Name] = true
		}
		if got := strings.Join(lines, "\n"); got != strings.TrimSuffix(text, "\n") {
			t.Fatalf("%q: the lines are %q", text, got)
		}
	})
}

func read(t *testing.T, text string, o crontab.Options) crontab.Report {
	t.Helper()
	r, err := crontab.Parse(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
