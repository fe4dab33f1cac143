package job_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/go-coord/coord/internal/cron/job"
)

// TestEveryJobComesBackAsItWas: any valid job is written in one line, which is read as the same job, which is written as the same line;
// and the schema lets it pass.
func TestEveryJobComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	rapid.Check(t, func(t *rapid.T) {
		j := anyJob(t)
		if err := j.Validate("job"); err != nil {
			t.Fatalf("%+v: %v", j, err)
		}
		comesBack(t, s, j)
	})
}

func comesBack(t rapid.TB, s *jsonschema.Schema, j *job.Job) {
	t.Helper()
	line := j.Encode()
	if bytes.ContainsAny(line, "\n\r") {
		t.Fatalf("%q is more than one line", line)
	}
	again, err := job.Parse("job", line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if diff := cmp.Diff(j, again); diff != "" {
		t.Fatalf("%s: -was +is:\n%s", line, diff)
	}
	if !bytes.Equal(line, again.Encode()) {
		t.Fatalf("%s is written again as %s", line, again.Encode())
	}
	if err := judge(s, string(line)); err != nil {
		t.Fatalf("%s: the schema: %v", line, err)
	}
}

// anyJob draws a valid job, each field said or not.
func anyJob(t *rapid.T) *job.Job {
	j := &job.Job{
		Schedule: rapid.SliceOfN(rapid.SampledFrom([]string{"@daily", "* * * * *", "H 2 * * MON-FRI", "@every 90s", "0 0 L * ?"}), 1, 3).Draw(t, "schedule"),
		TZ:       maybe(t, "tz", rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Asia/Tokyo"})),
		DST:      maybe(t, "dst", rapid.SampledFrom([]string{"cron", "literal", "skip"})),
		Jitter:   length(t, "jitter", time.Millisecond, 168*time.Hour),
		StartAt:  moment(t, "start_at", 2000, 2099), EndAt: moment(t, "end_at", 2100, 9990),
		Stdin: maybe(t, "stdin", rapid.String()), Env: environment(t), EnvInherit: rapid.Bool().Draw(t, "env_inherit"),
		User: maybe(t, "user", rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\$?`)), Cwd: path(t, "cwd"),
		Umask: maybe(t, "umask", rapid.StringMatching(`0?[0-7]{3}`)), Select: labels(t, "select"),
		RunOn:         maybe(t, "run_on", rapid.SampledFrom([]string{"one", "all"})),
		Overlap:       maybe(t, "overlap", rapid.SampledFrom([]string{"forbid", "allow", "queue_one", "replace"})),
		StartDeadline: length(t, "start_deadline", time.Second, 24*time.Hour), Catchup: catchup(t),
		RunTTL: length(t, "run_ttl", time.Millisecond, 720*time.Hour), KillAfter: length(t, "kill_after", time.Millisecond, time.Hour),
		Retry: retry(t), OnLost: maybe(t, "on_lost", rapid.SampledFrom([]string{"skip", "retry"})), SuccessCodes: codes(t, "success_codes", 0),
		Labels: labels(t, "labels"), Description: maybe(t, "description", rapid.String()),
		AddedBy: maybe(t, "added_by", rapid.String()), AddedAt: moment(t, "added_at", 1970, 9998),
		ScheduleSince: moment(t, "schedule_since", 1970, 9998), ResumedAt: moment(t, "resumed_at", 1970, 9998),
	}
	if rapid.Bool().Draw(t, "is a script") {
		j.Script, j.Shell = argument(1).Draw(t, "script"), path(t, "shell")
	} else {
		j.Cmd = append([]string{argument(1).Draw(t, "cmd[0]")}, rapid.SliceOfN(argument(0), 0, 3).Draw(t, "cmd")...)
	}
	if j.RunOn != "all" {
		j.Prefer = maybe(t, "prefer", rapid.SampledFrom([]string{"spread", "sticky", "any"}))
	} else if j.Retry != nil {
		j.Retry.OtherNode = false
	}
	if rapid.Bool().Draw(t, "output") {
		j.Output = &job.Output{Keep: job.Size(rapid.IntRange(0, 64<<10).Draw(t, "keep")), File: path(t, "file")}
		if j.Output.File != "" {
			j.Output.FileSize, j.Output.FileCount = job.Size(maybe(t, "file_size", rapid.IntRange(1<<10, 100<<30))), rapid.IntRange(0, 100).Draw(t, "file_count")
		}
	}
	if rapid.Bool().Draw(t, "history") {
		n := rapid.IntRange(0, 10000)
		j.History = &job.History{OK: n.Draw(t, "ok"), Failed: n.Draw(t, "failed"), TTL: length(t, "ttl", time.Minute, 8760*time.Hour)}
	}
	if rapid.Bool().Draw(t, "paused") {
		j.Paused = &job.Paused{By: maybe(t, "by", rapid.String()), Why: maybe(t, "why", rapid.String()), Until: moment(t, "until", 1970, 9998)}
		if at := moment(t, "at", 1970, 9998); at != nil {
			j.Paused.At = *at
		}
	}
	return j
}

// maybe draws a value, or zero.
func maybe[T any](t *rapid.T, label string, g *rapid.Generator[T]) (v T) {
	if rapid.Bool().Draw(t, "has "+label) {
		v = g.Draw(t, label)
	}
	return v
}

func argument(least int) *rapid.Generator[string] {
	return rapid.StringN(least, 20, -1).Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
}

func path(t *rapid.T, label string) string {
	if s := maybe(t, label, argument(0)); s != "" {
		return "/" + s
	}
	return ""
}

func length(t *rapid.T, label string, least, most time.Duration) job.Duration {
	return job.Duration(maybe(t, label, rapid.Int64Range(int64(least), int64(most))))
}

func moment(t *rapid.T, label string, first, last int) *time.Time {
	if !rapid.Bool().Draw(t, "has "+label) {
		return nil
	}
	from, until := time.Date(first, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(last+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()-1
	at := time.Unix(rapid.Int64Range(from, until).Draw(t, label), rapid.Int64Range(0, 999999999).Draw(t, "nanoseconds")).UTC()
	return &at
}

func codes(t *rapid.T, label string, least int) []int {
	return maybe(t, label, rapid.SliceOfNDistinct(rapid.IntRange(least, 255), 1, 4, rapid.ID[int]))
}

func labels(t *rapid.T, label string) map[string]string {
	key, value := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_/-]{0,9}`), rapid.StringMatching(`[a-z \x{e4}\x{2028}"'<]{0,9}`)
	return maybe(t, label, rapid.MapOfN(key, value, 1, 3))
}

func environment(t *rapid.T) map[string]job.EnvValue {
	value := rapid.Custom(func(t *rapid.T) job.EnvValue {
		if file := path(t, "file"); file != "" {
			return job.EnvValue{File: file}
		}
		return job.EnvValue{Value: argument(0).Draw(t, "value")}
	})
	return maybe(t, "env", rapid.MapOfN(rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,9}`), value, 1, 3))
}

func catchup(t *rapid.T) *job.Catchup {
	window := func() job.Duration { return length(t, "window", time.Second, 744*time.Hour) }
	switch rapid.IntRange(0, 3).Draw(t, "catchup") {
	case 1:
		return &job.Catchup{Policy: job.CatchupNone}
	case 2:
		return &job.Catchup{Policy: job.CatchupLast, Window: window()}
	case 3:
		return &job.Catchup{Policy: job.CatchupAll, Window: max(window(), job.Duration(time.Second)), Max: rapid.IntRange(0, 1000).Draw(t, "max")}
	}
	return nil
}

func retry(t *rapid.T) *job.Retry {
	if !rapid.Bool().Draw(t, "retry") {
		return nil
	}
	r := &job.Retry{
		Max: rapid.IntRange(1, 100).Draw(t, "max"), Delay: length(t, "delay", time.Millisecond, time.Hour),
		MaxDelay: length(t, "max_delay", time.Hour, 24*time.Hour), Factor: maybe(t, "factor", rapid.Float64Range(1, 100)),
		ExitCodes: codes(t, "exit_codes", 1), OtherNode: rapid.Bool().Draw(t, "other_node"),
	}
	return r
}

// FuzzParse: whatever is read, it is an error of one harmless line, or a job that comes back as it was.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	for _, bad := range append(badFields(), badDocuments()...) {
		f.Add([]byte(bad.doc))
	}
	f.Add([]byte(`{"schedule":"@daily","cmd":["x"],"catchup":"last","retry":{"max":1,"factor":1.0000000000000002}}`))
	f.Add([]byte(strings.Repeat(`{"schedule":[`, 100)))
	f.Add([]byte(`{"schedule":"@daily","script":"\ud800\u2028","env":{"A":{"file":"/\udfff"}}}`))
	s := compiled(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		j, err := job.Parse("job", doc)
		if err == nil {
			comesBack(t, s, j)
			j.Plan("job", nil)
			return
		}
		if !errors.Is(err, job.ErrSpec) || len(err.Error()) > 2000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("%q: not one harmless line that wraps ErrSpec: %q", doc, err)
		}
	})
}
