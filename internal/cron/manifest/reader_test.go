package manifest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/manifest"
)

// read reads one file and gives the jobs, as JSON documents with their place, and the faults.
func read(t *testing.T, file, text string) (jobs, faults []string) {
	t.Helper()
	r, err := manifest.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	r.Read(file, []byte(text))
	return told(r)
}

func told(r *manifest.Reader) (jobs, faults []string) {
	for _, e := range r.Entries {
		jobs = append(jobs, fmt.Sprintf("%s %s", e.At, manifest.JSON(e.Name, e.Job)))
	}
	for _, f := range r.Faults {
		faults = append(faults, f.Error())
	}
	return jobs, faults
}

func TestWhatFilesSay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"one job", "a.yaml", "name: x\nschedule: 30 2 * * *\ncmd: [a, -b]\n",
			[]string{`a.yaml:1 {"name":"x","schedule":"30 2 * * *","cmd":["a","-b"]}`}},
		{"several documents", "a.yaml", "# nothing\n---\nname: x\nschedule: \"@daily\"\nscript: |\n  a\n  b\n---\n---\nname: y\nschedule: [\"@daily\"]\nscript: c\n...\n",
			[]string{`a.yaml:3 {"name":"x","schedule":"@daily","script":"a\nb\n"}`, `a.yaml:10 {"name":"y","schedule":"@daily","script":"c"}`}},
		{"jobs by their names", "a.yml", "jobs:\n  x: {schedule: 0 0 * * *, script: a}\n  123: {schedule: 0 0 * * *, script: b}\n",
			[]string{`a.yml:2 {"name":"x","schedule":"0 0 * * *","script":"a"}`, `a.yml:3 {"name":"123","schedule":"0 0 * * *","script":"b"}`}},
		{"what YAML would make of it counts not", "-", "name: \"1\"\nschedule: 0 0 * * *\nscript: no\numask: 0022\nstart_at: 2027-03-14T02:30:00Z\n" +
			"seconds: false\nrun_ttl: 90s\nlabels: {on: off, yes: \"1\", n: 2027-01-01}\nretry: {max: 3, factor: 1.5}\ndescription: é\n",
			[]string{`-:1 {"name":"1","schedule":"0 0 * * *","start_at":"2027-03-14T02:30:00Z","script":"no","umask":"0022","run_ttl":"1m30s",` +
				`"retry":{"max":3,"factor":1.5},"labels":{"n":"2027-01-01","on":"off","yes":"1"},"description":"é"}`}},
		{"aliases", "a.yaml", "jobs:\n  x: &x {schedule: 0 0 * * *, env: &e {A: b}, script: a}\n  y: *x\n  z: {schedule: 0 0 * * *, script: a, env: *e}\n",
			[]string{`a.yaml:2 {"name":"x","schedule":"0 0 * * *","script":"a","env":{"A":"b"}}`, `a.yaml:3 {"name":"y","schedule":"0 0 * * *","script":"a","env":{"A":"b"}}`,
				`a.yaml:4 {"name":"z","schedule":"0 0 * * *","script":"a","env":{"A":"b"}}`}},
		{"JSON", "a.json", "{\"name\":\"x\",\"schedule\":\"@daily\",\"script\":\"\\u00e9\\/\",\"history\":{\"ok\":5}}\n\n{\"jobs\":{\n\"y\":{\"schedule\":\"@daily\",\"script\":\"c\",\"seconds\":true}}}\n",
			[]string{`a.json:1 {"name":"x","schedule":"@daily","script":"é/","history":{"ok":5}}`, `a.json:4 {"name":"y","schedule":"@daily","seconds":true,"script":"c"}`}},
		{"JSON without a name", "stdin", `{"name":"x","schedule":"@daily","script":"a"}` + "\n" + `{"name":"y","schedule":"@daily","script":"a"}`,
			[]string{`stdin:1 {"name":"x","schedule":"@daily","script":"a"}`, `stdin:2 {"name":"y","schedule":"@daily","script":"a"}`}},
		{"YAML that begins as JSON does", "stdin", `{name: x, schedule: "@daily", script: a}`, []string{`stdin:1 {"name":"x","schedule":"@daily","script":"a"}`}},
		{"nothing", "a.yaml", "", nil},
		{"a comment", "a.yaml", "# x\n", nil},
		{"null", "a.json", "null", nil},
	} {
		jobs, faults := read(t, tt.file, tt.text)
		if !slices.Equal(jobs, tt.want) || faults != nil {
			t.Errorf("%s:\n got %q\nwant %q\nfaults %q", tt.name, jobs, tt.want, faults)
		}
	}
}

func TestWhatIsWrongIsSaidByFileLineJobAndField(t *testing.T) {
	t.Parallel()
	const spec = "schedule: 0 0 * * *, script: a"
	for _, tt := range []struct{ file, text, want string }{
		{"a.yaml", "- x\n", "a.yaml:1: want an object: a job with its name, or jobs by their names"},
		{"a.json", "7", "a.json:1: want an object: a job with its name, or jobs by their names"},
		{"a.yaml", "{" + spec + "}", "a.yaml:1: name: is missing: want the name of the job beside its fields, or jobs with jobs by their names"},
		{"a.yaml", "{name: x, name: y, " + spec + "}", "a.yaml:1: name: is given twice"},
		{"a.yaml", "\nname: 7\n", "a.yaml:2: name: want a text; a number as a name has to stand in quotes"},
		{"a.yaml", "name: [x]\n", "a.yaml:1: name: want a text; a number as a name has to stand in quotes"},
		{"a.yaml", "{name: -x, " + spec + "}", `a.yaml:1: -x: usage: name "-x" has to start with a letter or a digit`},
		{"a.yaml", "{name: x, jobs: {}}", "a.yaml:1: jobs: there is something beside it: want jobs alone, or one job with its name"},
		{"a.yaml", "jobs: [x]\n", "a.yaml:1: jobs: want an object of jobs by their names"},
		{"a.yaml", "jobs:\n  [x]: {}\n", "a.yaml:2: line 2: a key that is no text"},
		{"a.yaml", "jobs:\n  x:\n    [y]: {}\n", "a.yaml:2: x: line 3: a key that is no text"},
		{"a.yaml", "jobs:\n  x:\n    <<: {}\n", "a.yaml:2: x: line 3: merge keys (<<) are not supported: write the fields out"},
		{"a.yaml", "{name: x, seconds: !mine 1, " + spec + "}", `a.yaml:1: x: line 1: tag "!mine": want none`},
		{"a.yaml", "{name: x, seconds: !!bool maybe, " + spec + "}", `a.yaml:1: x: want true or false, got "maybe"`},
		{"a.yaml", "{name: x, retry: {max: 0x3}, " + spec + "}", `a.yaml:1: x: retry.max "0x3": want a whole number from 1 to 100`},
		{"a.yaml", "{name: x, schedule: 0 0 * * *, cmd: [sleep, 30]}", `a.yaml:1: x: cmd[1] 30: want a text in UTF-8 without a zero byte; as a text it has to stand in quotes`},
		{"a.yaml", "{name: x, schedule: 0 0 * * *, cmd: [true]}", `a.yaml:1: x: cmd[0] true: want a text in UTF-8 without a zero byte; as a text it has to stand in quotes`},
		{"a.yaml", "{name: x, env: {A: 1}, " + spec + "}", `a.yaml:1: x: env.A: is of another type: want a text, or {"file": PATH}; as a text it has to stand in quotes`},
		{"a.yaml", "{name: x, labels: {A: 1.5}, " + spec + "}", `a.yaml:1: x: labels.A 1.5: want a label's value of at most 200 bytes in UTF-8, without commas and control characters; as a text it has to stand in quotes`},
		{"a.yaml", "{name: x, retry: ~, " + spec + "}", `a.yaml:1: x: retry null: want an object`},
		{"a.yaml", "{name: x, overlap: forbit, " + spec + "}", `a.yaml:1: x: overlap "forbit": want forbid, allow, queue_one or replace; did you mean forbid?`},
		{"a.yaml", "{name: x, tz: UTC, tz: UTC, " + spec + "}", `a.yaml:1: x: tz: is given twice`},
		{"a.json", `{"name":"x","schedule":"@daily","schedule":"@daily"}`, `a.json:1: x: schedule: is given twice`},
		{"a.json", `{"name":"x",` + "\n", "a.json:1: no JSON: unexpected EOF"},
		{"a.json", `{"name":"x"` + "\n]", "a.json:2: no JSON: invalid character ']' after object key:value pair"},
		{"a.json", strings.Repeat("[", 50), "a.json:1: no JSON: it nests deeper than 32 levels, or holds an alias of itself"},
		{"a.yaml", "a: b: c\n", "a.yaml:1: no YAML: mapping values are not allowed in this context"},
		{"a.yaml", "name: x\nschedule: */5 * * * *\n", "a.yaml:2: no YAML: did not find expected alphabetic or numeric character; a text that begins with * or @, as schedules do, has to stand in quotes"},
		{"a.yaml", "schedule: @daily\n", "a.yaml:1: no YAML: found character that cannot start any token; a text that begins with * or @, as schedules do, has to stand in quotes"},
		{"a.yaml", "name: *x\n", "a.yaml:1: no YAML: unknown anchor 'x' referenced; a text that begins with * or @, as schedules do, has to stand in quotes"},
		{"a.yaml", "name: \"\x1b\"\n", "a.yaml:1: no YAML: control characters are not allowed"},
		{"a\x1b.yaml", "- x\n", `a\x1b.yaml:1: want an object: a job with its name, or jobs by their names`},
	} {
		jobs, faults := read(t, tt.file, tt.text)
		if !slices.Equal(faults, []string{tt.want}) || jobs != nil {
			t.Errorf("%q:\n got %q\nwant %q\njobs %q", tt.text, faults, tt.want, jobs)
		}
	}
}

// TestOneThatIsWrongHidesNoOther: all that is wrong is found at once, and a name counts once in all files.
func TestOneThatIsWrongHidesNoOther(t *testing.T) {
	t.Parallel()
	r, err := manifest.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	r.Read("a.yaml", []byte("jobs:\n  x: {schedule: x, script: a}\n  y: {schedule: 0 0 * * *, script: a}\n  z: {schedule: 0 0 * * *}\n---\n7\n---\nname: w\nschedule: 0 0 * * *\nscript: a\n"))
	r.Read("b.yaml", []byte("{name: y, schedule: 0 0 * * *, script: a}"))
	jobs, faults := told(r)
	if len(jobs) != 2 || len(faults) != 4 {
		t.Fatalf("jobs %q, faults %q", jobs, faults)
	}
	for i, want := range []string{"a.yaml:2: x: schedule: ", "a.yaml:4: z: cmd: is missing", "a.yaml:6: want an object", "b.yaml:1: y: is given twice, the first time at a.yaml:3"} {
		if !strings.HasPrefix(faults[i], want) {
			t.Errorf("%q does not begin with %q", faults[i], want)
		}
	}
	if !errors.Is(r.Faults[0], job.ErrSpec) {
		t.Errorf("%v does not wrap %v", r.Faults[0], job.ErrSpec)
	}
}

// TestHostileFilesCostNoMoreThanTheirBytes: they end in a fault, soon.
func TestHostileFilesCostNoMoreThanTheirBytes(t *testing.T) {
	t.Parallel()
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [" + strings.Repeat("lol,", 10) + "]\n")
	for i := 1; i < 20; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a billion laughs", laughs.String() + "name: x\n", "a.yaml:1: x: it has more than 131072 bytes: want no more"},
		{"an alias of itself", "name: x\nenv: &a {b: *a}\n", "a.yaml:1: x: it nests deeper than 32 levels, or holds an alias of itself"},
		{"a job that is too large", "name: x\nscript: " + strings.Repeat("x", 200_000) + "\n", "a.yaml:1: x: it has 200013 bytes: want 131072 at most"},
		{"a file that is too large", strings.Repeat("#", manifest.MaxSize+1), "a.yaml:1: it has more than 67108864 bytes: want no more"},
	} {
		if jobs, faults := read(t, "a.yaml", tt.text); !slices.Equal(faults, []string{tt.want}) || jobs != nil {
			t.Errorf("%s: got %q, want %q", tt.name, faults, tt.want)
		}
	}
}

// FuzzRead: whatever is read, faults are single harmless lines, and jobs come back as they were.
func FuzzRead(f *testing.F) {
	f.Add("name: x\nschedule: 30 2 * * *\ncmd: [a, -b]\n")
	f.Add("jobs:\n  x: &x {schedule: 0 0 * * *, env: &e {A: b}, script: \"\\u202e\\t\"}\n  y: *x\n")
	f.Add(`{"name":"x","schedule":"@daily","script":"a\n b"}`)
	f.Add("schedule: */5 * * * *\n---\n...\n--- |\n x\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, file := range []string{"a.yaml", "a.json", "stdin"} {
			r, err := manifest.NewReader()
			if err != nil {
				t.Fatal(err)
			}
			r.Read(file, []byte(text))
			for _, fault := range r.Faults {
				harmless(t, fault.Error())
			}
			for _, e := range r.Entries {
				comesBack(t, e.Name, e.Job)
			}
		}
	})
}
