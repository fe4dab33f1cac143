package job_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
)

const allFields = "schedule, seconds, tz, dst, jitter, start_at, end_at, cmd, script, shell, stdin, env, env_inherit, user, cwd, umask, " +
	"run_on, select, prefer, overlap, start_deadline, catchup, run_ttl, kill_after, retry, on_lost, success_codes, output, history, labels, " +
	"description, paused, added_by, added_at, schedule_since or resumed_at"

// refusal is a document and what is said of it, after "bad job: ".
type refusal struct{ doc, want string }

func TestErrorsNameTheFieldTheValueAndWhatIsAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range badFields() {
		refused(t, tt.doc, tt.want)
	}
}

// badFields are jobs with one bad field, each.
func badFields() []refusal {
	all := []refusal{
		// Names.
		{`"overlaps":"allow"`, "overlaps: there is no such field; did you mean overlap?"},
		{`"Overlap":"allow"`, "Overlap: there is no such field; did you mean overlap?"},
		{`"timezone":"UTC"`, "timezone: there is no such field: want " + allFields},
		{`"":1`, `"": there is no such field: want ` + allFields},
		{`"\u001b[2J":1`, `"\x1b[2J": there is no such field: want ` + allFields},
		{`"` + strings.Repeat("x", 100) + `":1`, `"` + strings.Repeat("x", 40) + `...": there is no such field: want ` + allFields},
		{`"retry":{"max":1,"maxdelay":"1s"}`, "retry.maxdelay: there is no such field; did you mean retry.max_delay?"},
		{`"retry":{"max":1,"backoff":"1s"}`, "retry.backoff: there is no such field: want max, delay, factor, max_delay, exit_codes or other_node"},
		{`"env":{"A":{"fiel":"/x"}}`, "env.A.fiel: there is no such field; did you mean env.A.file?"},
		{`"catchup":{"polcy":"all"}`, "catchup.polcy: there is no such field; did you mean catchup.policy?"},
		{`"overlap":"allow","overlap":"allow"`, "overlap: is given twice"},
		{`"retry":{"max":1,"max":1}`, "retry.max: is given twice"},
		{`"labels":{"a":"b","a":"b"}`, "labels.a: is given twice"},
		{`"after":["x"]`, "after: is not supported yet"},
		{`"calendar":"x"`, "calendar: is not supported yet"},
		{`"mutex":"x"`, "mutex: is not supported yet"},
		{`"notify":{}`, "notify: is not supported yet"},
		{`"expect":"1h"`, "expect: is not supported yet"},
		{`"retry":{"max":1,"after":1}`, "retry.after: there is no such field: want max, delay, factor, max_delay, exit_codes or other_node"},

		// Types.
		{`"seconds":1`, "seconds 1: want true or false"},
		{`"seconds":"yes"`, `seconds "yes": want true or false`},
		{`"tz":null`, "tz null: want an IANA name, such as Europe/Berlin or UTC"},
		{`"overlap":true`, "overlap true: want forbid, allow, queue_one or replace"},
		{`"jitter":12`, "jitter 12: want a duration from 1ms to 168h"},
		{`"start_at":1805007600`, "start_at 1805007600: want a time of RFC 3339 from 1970 to 9999, such as 2027-03-14T02:30:00Z"},
		{`"stdin":["a"]`, "stdin [...]: want a text in UTF-8"},
		{`"env":["A=b"]`, "env [...]: want an object of variables"},
		{`"env":{"PIN":1234}`, `env.PIN: is of another type: want a text, or {"file": PATH}`},
		{`"env":{"PIN":{"file":["/x"]}}`, "env.PIN.file [...]: want a path that begins with /"},
		{`"select":"a=b"`, `select "a=b": want an object of texts`},
		{`"labels":{"a":1}`, "labels.a 1: want a label's value of at most 200 bytes in UTF-8, without commas and control characters"},
		{`"retry":3`, "retry 3: want an object"},
		{`"retry":{"max":"3"}`, `retry.max "3": want a whole number from 1 to 100`},
		{`"retry":{"max":1.5}`, "retry.max 1.5: want a whole number from 1 to 100"},
		{`"retry":{"max":99999999999999999999}`, "retry.max 99999999999999999999: want a whole number from 1 to 100"},
		{`"retry":{"max":1,"factor":"2"}`, `retry.factor "2": want a number from 1 to 100`},
		{`"retry":{"max":1,"factor":1e999}`, "retry.factor 1e999: want a number from 1 to 100"},
		{`"success_codes":0`, "success_codes 0: want a list of exit codes, one at least"},
		{`"success_codes":[]`, "success_codes []: want a list of exit codes, one at least"},
		{`"success_codes":["0"]`, `success_codes[0] "0": want an exit code from 0 to 255, each once`},
		{`"output":{"keep":16384}`, "output.keep 16384: want a size from 1B to 64KiB"},
		{`"catchup":true`, "catchup true: want none, last or all, or an object with policy, window and max"},
		{`"catchup":[]`, "catchup [...]: want none, last or all, or an object with policy, window and max"},

		// Values.
		{`"dst":"utc"`, `dst "utc": want cron, literal or skip`},
		{`"overlap":"queue"`, `overlap "queue": want forbid, allow, queue_one or replace`},
		{`"overlap":"queue-one"`, `overlap "queue-one": want forbid, allow, queue_one or replace; did you mean queue_one?`},
		{`"overlap":""`, `overlap "": want forbid, allow, queue_one or replace`},
		{`"overlap":"\u202e"`, `overlap "\u202e": want forbid, allow, queue_one or replace`},
		{`"run_on":"each"`, `run_on "each": want one or all`},
		{`"prefer":"stikcy"`, `prefer "stikcy": want spread, sticky or any; did you mean sticky?`},
		{`"on_lost":"rerun"`, `on_lost "rerun": want skip or retry`},
		{`"jitter":"12"`, `jitter "12": want a duration from 1ms to 168h, such as 90s, 1h30m or 12h`},
		{`"jitter":"1d"`, `jitter "1d": want a duration from 1ms to 168h, such as 90s, 1h30m or 12h`},
		{`"jitter":"0s"`, `jitter 0s: want a duration from 1ms to 168h`},
		{`"jitter":"-1s"`, `jitter -1s: want a duration from 1ms to 168h`},
		{`"jitter":"169h"`, `jitter 169h: want a duration from 1ms to 168h`},
		{`"start_deadline":"10ms"`, `start_deadline 10ms: want a duration from 1s to 24h`},
		{`"run_ttl":"800h"`, `run_ttl 800h: want a duration from 1ms to 720h`},
		{`"kill_after":"0s"`, `kill_after 0s: want a duration from 1ms to 1h`},
		{`"start_at":"2027-01-01"`, `start_at "2027-01-01": want a time of RFC 3339 from 1970 to 9999, such as 2027-03-14T02:30:00Z`},
		{`"start_at":"1969-01-01T00:00:00Z"`, `start_at "1969-01-01T00:00:00Z": want a time of RFC 3339 from 1970 to 9999, such as 2027-03-14T02:30:00Z`},
		{`"start_at":"9999-12-31T23:59:59-01:00"`, `start_at "10000-01-01T00:59:59Z": want a time of RFC 3339 from 1970 to 9999, such as 2027-03-14T02:30:00Z`},
		{`"user":"root; rm"`, `user "root; rm": want a user's name or number, at most 32 letters, digits, _ . and -`},
		{`"user":"-u"`, `user "-u": want a user's name or number, at most 32 letters, digits, _ . and -`},
		{`"cwd":"srv"`, `cwd "srv": want a path that begins with /`},
		{`"cwd":"/a\u0000b"`, `cwd "/a\x00b": want a path that begins with /`},
		{`"umask":"22"`, `umask "22": want three octal digits, with a 0 before them or without, such as 0022`},
		{`"umask":"0088"`, `umask "0088": want three octal digits, with a 0 before them or without, such as 0022`},
		{`"env":{"1A":"x"}`, `env.1A "1A": want a name of letters, digits and _, the first no digit`},
		{`"env":{"":"x"}`, `env."" "": want a name of letters, digits and _, the first no digit`},
		{`"env":{"A=B":"x"}`, `env."A=B" "A=B": want a name of letters, digits and _, the first no digit`},
		{`"env":{"A":"secret\u0000"}`, `env.A: want a text in UTF-8 without a zero byte`},
		{`"env":{"A":{}}`, `env.A.file: is missing: want a path that begins with /`},
		{`"env":{"A":{"file":""}}`, `env.A.file "": want a path that begins with /`},
		{`"env":{"A":{"file":"x"}}`, `env.A.file "x": want a path that begins with /`},
		{`"select":{"a b":"x"}`, `select."a b" "a b": want a label's name of 1 to 200 letters, digits, . _ - and /, the first a letter or a digit, without ..`},
		{`"select":{"a":"x,y"}`, `select.a "x,y": want a label's value of at most 200 bytes in UTF-8, without commas and control characters`},
		{`"success_codes":[0,256]`, `success_codes[1] 256: want an exit code from 0 to 255, each once`},
		{`"success_codes":[0,1,0]`, `success_codes[2] 0: want an exit code from 0 to 255, each once`},
		{`"retry":{"max":1,"exit_codes":[0]}`, `retry.exit_codes[0] 0: want an exit code from 1 to 255, each once`},
		{`"retry":{"max":0}`, `retry.max 0: want a whole number from 1 to 100`},
		{`"retry":{"max":-1}`, `retry.max -1: want a whole number from 1 to 100`},
		{`"retry":{"max":1,"factor":0.5}`, `retry.factor 0.5: want a number from 1 to 100`},
		{`"output":{"keep":"16KB"}`, `output.keep "16KB": want a size from 1B to 64KiB, a whole number of B, KiB, MiB or GiB`},
		{`"output":{"keep":"-1KiB"}`, `output.keep "-1KiB": want a size from 1B to 64KiB, a whole number of B, KiB, MiB or GiB`},
		{`"output":{"keep":"99999999999GiB"}`, `output.keep "99999999999GiB": want a size from 1B to 64KiB, a whole number of B, KiB, MiB or GiB`},
		{`"output":{"keep":"65KiB"}`, `output.keep 65KiB: want a size from 1B to 64KiB`},
		{`"output":{"keep":"0B"}`, `output.keep 0B: want a size from 1B to 64KiB`},
		{`"history":{"ok":0}`, `history.ok 0: want a whole number from 1 to 10000`},
		{`"history":{"ttl":"1s"}`, `history.ttl 1s: want a duration from 1m to 8760h`},

		// Schedules and zones.
		{`"schedule":"* 25 * * *"`, `schedule: hour "25" at column 3: want 0 to 23; did you mean 23?`},
		{`"schedule":["@daily",1]`, `schedule[1] 1: want a schedule, such as 30 2 * * *, or a list of them`},
		{`"schedule":[]`, `schedule []: want a schedule, such as 30 2 * * *, or a list of them`},
		{`"schedule":{}`, `schedule {...}: want a schedule, such as 30 2 * * *, or a list of them`},
		{`"schedule":"0 0 30 2 *"`, `schedule: day-of-month "30", month "2" and day-of-week "*": want a day that comes at least once in 10 years; did you mean L, the last day of the month?`},
		{`"tz":"Local"`, `tz: "Local" is another one on each host: want an IANA name, such as Europe/Berlin or UTC`},

		// What belongs together.
		{`"cmd":["x"]`, "cmd and script: both are given: want one of them"},
		{`"end_at":"2027-01-01T00:00:00Z","start_at":"2027-01-01T01:00:00+01:00"`, `end_at "2027-01-01T00:00:00Z": want a time after start_at, 2027-01-01T00:00:00Z`},
		{`"run_on":"all","prefer":"any"`, `prefer "any": want no preference with run_on all: every node runs it`},
		{`"run_on":"all","retry":{"max":1,"other_node":true}`, `retry.other_node true: want false with run_on all: every node has a run of its own`},
		{`"catchup":"all"`, `catchup.window: is missing: want how long ago a tick may have been, such as 6h, with policy all`},
		{`"catchup":{}`, `catchup.policy: is missing: want none, last or all`},
		{`"catchup":{"policy":"some"}`, `catchup.policy "some": want none, last or all; did you mean none?`},
		{`"catchup":{"policy":"last","max":3}`, `catchup.max 3: want no max with policy last: it is for all`},
		{`"catchup":{"policy":"none","window":"1h"}`, `catchup.window 1h: want no window with policy none: nothing is caught up with`},
		{`"retry":{}`, `retry.max: is missing: want a whole number from 1 to 100`},
		{`"retry":{"max":1,"delay":"1m","max_delay":"1s"}`, `retry.max_delay 1s: want a duration no shorter than delay, 1m`},
		{`"output":{"file_size":"1MiB"}`, `output.file_size 1MiB: want a file beside it`},
		{`"output":{"file_count":1}`, `output.file_count 1: want a file beside it`},
	}
	for i, bad := range all {
		if !strings.HasPrefix(bad.doc, `"schedule"`) {
			bad.doc = `"schedule":"@daily",` + bad.doc
		}
		all[i].doc = `{"script":"x",` + bad.doc + `}`
	}
	return all
}

func TestErrorsAboutWholeDocuments(t *testing.T) {
	t.Parallel()
	for _, tt := range badDocuments() {
		refused(t, tt.doc, tt.want)
	}
}

// badDocuments are no jobs.
func badDocuments() []refusal {
	return []refusal{
		{``, "no JSON: it ends too early, at byte 0"},
		{`{"cmd":["x"]`, "no JSON: it ends too early, at byte 12"},
		{`[]`, "the job [...]: want an object"},
		{`"x"`, `the job "x": want an object`},
		{`null`, "the job null: want an object"},
		{`{"cmd":["x",]}`, "no JSON: invalid character ']' looking for beginning of value, near byte 12"},
		{`{cmd:["x"]}`, "no JSON: invalid character 'c', near byte 1"},
		{`{"schedule":"@daily","cmd":["x"]}{}`, "something follows the job, at byte 34: want one JSON object"},
		{"{\"cmd\":[\"\xff\"]}", "it is not UTF-8: want one JSON object"},
		{`{"cmd":["x"]}`, "schedule: is missing: want a schedule, such as 30 2 * * *, or a list of them"},
		{`{"schedule":"@daily"}`, "cmd: is missing: want a command as a list of texts, or a script"},
		{`{"schedule":"@daily","cmd":"x"}`, `cmd "x": want a list of texts, one at least`},
		{`{"schedule":"@daily","cmd":[]}`, `cmd []: want a list of texts, one at least`},
		{`{"schedule":"@daily","cmd":["x",1]}`, `cmd[1] 1: want a text in UTF-8 without a zero byte`},
		{`{"schedule":"@daily","cmd":["x","a\u0000"]}`, `cmd[1] "a\x00": want a text in UTF-8 without a zero byte`},
		{`{"schedule":"@daily","cmd":[""]}`, `cmd[0] "": want the name or the path of a program`},
		{`{"schedule":"@daily","script":""}`, `script "": want a text in UTF-8 that is not empty and has no zero byte`},
		{`{"schedule":"@daily","cmd":["x"],"shell":"/bin/sh"}`, `shell "/bin/sh": want no shell beside cmd: it is for a script`},
	}
}

// TestAJobThatIsCutIsRefused, wherever the cut is.
func TestAJobThatIsCutIsRefused(t *testing.T) {
	t.Parallel()
	doc := `{"schedule":["0 0 2 * * *"],"catchup":"last",` + full[strings.Index(full, `"seconds"`):]
	doc = strings.Replace(doc, `"catchup":{"policy":"all","window":"6h","max":20},`, "", 1)
	for _, doc := range []string{full, doc} {
		parse(t, doc)
		for n := range doc {
			if _, err := job.Parse("job", []byte(doc[:n])); !errors.Is(err, job.ErrSpec) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", doc[:n], err)
			}
		}
	}
}

// TestJobsThatWereNotRead: what JSON cannot even say is found as well.
func TestJobsThatWereNotRead(t *testing.T) {
	t.Parallel()
	early := time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		edit func(j *job.Job)
		want string
	}{
		{func(j *job.Job) { j.Script = "\xff" }, `script "\xff": want a text in UTF-8 that is not empty and has no zero byte`},
		{func(j *job.Job) { j.Stdin = "\xff" }, `stdin "\xff": want a text in UTF-8`},
		{func(j *job.Job) { j.Jitter = -1 }, `jitter -1ns: want a duration from 1ms to 168h`},
		{func(j *job.Job) { j.Retry = &job.Retry{Max: 1, Factor: math.NaN()} }, `retry.factor NaN: want a number from 1 to 100`},
		{func(j *job.Job) { j.StartAt = &early }, `start_at "-0005-01-01T00:00:00Z": want a time of RFC 3339 from 1970 to 9999, such as 2027-03-14T02:30:00Z`},
		{func(j *job.Job) { j.Paused = &job.Paused{At: early} }, `paused.at "-0005-01-01T00:00:00Z": want a time of RFC 3339 from 1970 to 9999, such as 2027-03-14T02:30:00Z`},
		{func(j *job.Job) { j.Env = map[string]job.EnvValue{"A": {Value: "x", File: "/x"}} }, "env.A: a value and a file are given: want one of them"},
		{func(j *job.Job) { j.Schedule = nil }, "schedule: is missing: want a schedule, such as 30 2 * * *, or a list of them"},
		{func(j *job.Job) { j.Labels = map[string]string{"b": ",", "a": ","} },
			`labels.a ",": want a label's value of at most 200 bytes in UTF-8, without commas and control characters`},
	} {
		j := &job.Job{Schedule: job.Strings{"@daily"}, Script: "x"}
		tt.edit(j)
		if err := j.Validate("job"); !errors.Is(err, job.ErrSpec) || err.Error() != "bad job: "+tt.want {
			t.Errorf("%+v:\n got %v\nwant bad job: %s", j, err, tt.want)
		}
	}
}

func refused(t *testing.T, doc, want string) {
	t.Helper()
	j, err := job.Parse("job", []byte(doc))
	if !errors.Is(err, job.ErrSpec) || err.Error() != "bad job: "+want {
		t.Errorf("%s:\n got %v\nwant bad job: %s", doc, err, want)
	}
	if err != nil && j != nil {
		t.Errorf("%s: a job beside the error", doc)
	}
}
