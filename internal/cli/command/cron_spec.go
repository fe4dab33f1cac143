package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// specFlag is a flag that says one field of a job. What the field accepts is for package job to say.
type specFlag struct {
	name, path, kind, usage string
	words                   []string // that are accepted, where they are a few
}

// The kinds of fields, which help shows.
const (
	aText     = "text"
	aNumber   = "number"
	aDuration = "duration"
	aSwitch   = "bool"
	aPair     = "KEY=VALUE"
	aFile     = "KEY=PATH"
	aList     = "list"
)

// specTable are all of them but the command. The name of a flag is the field's, but where another flag has that.
func specTable() []specFlag {
	return []specFlag{
		{"schedule", "schedule", aText, "when it is due: 30 2 * * *, @daily, @every 90s; several times for several", nil},
		{"seconds", "seconds", aSwitch, "the expressions have six fields, the first of them the second", nil},
		{"tz", "tz", aText, "time zone of the expressions, such as Europe/Berlin (default UTC)", nil},
		{"dst", "dst", aText, "times that the clocks show never, or twice", dstWords()},
		{"jitter", "jitter", aDuration, "how much later than its ticks it may be due, by its name", nil},
		{"start-at", "start_at", aText, "no tick before this time counts (RFC 3339)", nil},
		{"end-at", "end_at", aText, "no tick after this time counts (RFC 3339)", nil},

		{"script", "script", aText, "what a shell runs, in place of CMD", nil},
		{"shell", "shell", aText, "which shell (default /bin/sh)", nil},
		{"stdin", "stdin", aText, "what it reads", nil},
		{"env", "env", aPair, "a variable, which stands in etcd; several times for several", nil},
		{"env-file", "env", aFile, "a variable whose value stands in a file on the host", nil},
		{"env-inherit", "env_inherit", aSwitch, "the daemon's variables, too", nil},
		{"run-as", "user", aText, "as which user of the host (default as the daemon)", nil},
		{"cwd", "cwd", aText, "in which folder", nil},
		{"umask", "umask", aText, "such as 0022", nil},

		{"run-on", "run_on", aText, "on one host, or on all", []string{job.RunOnOne, job.RunOnAll}},
		{"select", "select", aPair, "only on hosts with this label; several times for several", nil},
		{"prefer", "prefer", aText, "which of the hosts: another one each time, the last one, the fastest",
			[]string{string(job.PreferSpread), string(job.PreferSticky), string(job.PreferAny)}},

		{"overlap", "overlap", aText, "at a tick while a run has not ended", overlapWords()},
		{"start-deadline", "start_deadline", aDuration, "how long after its tick it may start", nil},
		{"catchup", "catchup.policy", aText, "ticks that passed while no host was there",
			[]string{string(job.CatchupNone), string(job.CatchupLast), string(job.CatchupAll)}},
		{"catchup-window", "catchup.window", aDuration, "how long ago they may have been", nil},
		{"catchup-max", "catchup.max", aNumber, "of all: how many at most", nil},
		{"run-ttl", "run_ttl", aDuration, "how long a run may take (default 10m)", nil},
		{"kill-after", "kill_after", aDuration, "from SIGTERM to SIGKILL (default 5s)", nil},
		{"retry", "retry.max", aNumber, "how many runs may follow one that failed", nil},
		{"retry-delay", "retry.delay", aDuration, "after how long the first of them (default 10s)", nil},
		{"retry-factor", "retry.factor", aNumber, "how much longer before each further one (default 2)", nil},
		{"retry-max-delay", "retry.max_delay", aDuration, "and how long at most (default 10m)", nil},
		{"retry-exit-codes", "retry.exit_codes", aList, "only after these exit codes, joined by commas", nil},
		{"retry-other-node", "retry.other_node", aSwitch, "on another host, if there is one", nil},
		{"on-lost", "on_lost", aText, "a run whose host died with it", []string{job.LostSkip, job.LostRetry}},
		{"success-codes", "success_codes", aList, "exit codes of success, joined by commas (default 0)", nil},

		{"output-keep", "output.keep", aText, "how much of the end of its output is kept (default 16KiB)", nil},
		{"output-file", "output.file", aText, "a file on the host that all of it is appended to", nil},
		{"output-file-size", "output.file_size", aText, "at which size that is rotated (default 10MiB)", nil},
		{"output-file-count", "output.file_count", aNumber, "how many old ones are kept (default 5)", nil},
		{"history-ok", "history.ok", aNumber, "how many results of success are kept (default 50)", nil},
		{"history-failed", "history.failed", aNumber, "and of each other kind (default 50)", nil},
		{"history-ttl", "history.ttl", aDuration, "for how long (default 72h)", nil},

		{"label", "labels", aPair, "a label of the job; several times for several", nil},
		{"description", "description", aText, "for people", nil},
	}
}

func dstWords() []string {
	return []string{string(schedule.DSTCron), string(schedule.DSTLiteral), string(schedule.DSTSkip)}
}

func overlapWords() []string {
	return []string{string(job.OverlapForbid), string(job.OverlapAllow), string(job.OverlapQueueOne), string(job.OverlapReplace)}
}

// specFlags are the flags that make a job.
type specFlags struct {
	values []*specValue
}

func (s *specFlags) declare(cmd *cobra.Command) {
	for _, one := range specTable() {
		v := &specValue{specFlag: one}
		s.values = append(s.values, v)
		f := cmd.Flags().VarPF(v, one.name, "", one.usage)
		if one.kind == aSwitch {
			f.NoOptDefVal = "true"
		}
		if len(one.words) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(one.name, cobra.FixedCompletions(one.words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

func (s *specFlags) value(name string) *specValue {
	return s.values[slices.IndexFunc(s.values, func(v *specValue) bool { return v.name == name })]
}

func (s *specFlags) given(name string) bool { return len(s.value(name).texts) > 0 }

func (s *specFlags) first(name string) string { return s.value(name).texts[0] }

// job makes the job of that name.
func (s *specFlags) job(name string, argv []string) (*job.Job, error) {
	if !s.given("schedule") {
		return nil, cli.Usagef("--schedule is missing: want a schedule, such as '30 2 * * *' or @daily")
	}
	spec := map[string]any{}
	if len(argv) > 0 {
		spec["cmd"] = argv
	}
	for _, arg := range argv {
		if !utf8.ValidString(arg) {
			return nil, cli.Usagef("argument %s: want UTF-8", cli.Quote(arg))
		}
	}
	for _, v := range s.values {
		if len(v.texts) == 0 {
			continue
		}
		in, field := spec, v.path
		if outer, inner, below := strings.Cut(v.path, "."); below {
			if in[outer] == nil {
				in[outer] = map[string]any{}
			}
			in, field = in[outer].(map[string]any), inner
		}
		if err := v.put(in, field); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, cli.Usagef("make the job: %w", err)
	}
	j, err := job.Parse(name, raw)
	if err != nil {
		return nil, s.flagError(err)
	}
	return j, nil
}

// flagError makes of an error about a field one about the flag that says it.
func (s *specFlags) flagError(err error) error {
	text := strings.TrimPrefix(err.Error(), job.ErrSpec.Error()+": ")
	path := text[:strings.IndexFunc(text+" ", func(r rune) bool { return r == ' ' || r == ':' || r == '[' })]
	var best *specValue
	for _, v := range s.values {
		if (path == v.path || strings.HasPrefix(path, v.path+".")) && (best == nil || len(best.texts) == 0) {
			best = v
		}
	}
	switch {
	case best == nil:
		return cli.Usagef("%s", text)
	case best.path == path:
		return cli.Usagef("--%s%s", best.name, strings.TrimPrefix(text, path))
	}
	return cli.Usagef("--%s: %s", best.name, text)
}

// specValue is what was given for one of them.
type specValue struct {
	specFlag
	texts []string
}

var _ pflag.Value = (*specValue)(nil)

// Set takes a text. Of a field that has one value the last counts, as everywhere.
func (v *specValue) Set(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("want UTF-8")
	}
	switch v.kind {
	case aPair, aFile:
		key, _, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return errors.New("want " + v.Accepts())
		}
		if slices.ContainsFunc(v.texts, func(t string) bool { return strings.HasPrefix(t, key+"=") }) {
			return errors.New("is given twice")
		}
	case aSwitch:
		if text != "true" && text != "false" {
			return errors.New("want " + v.Accepts())
		}
	}
	if v.kind != aPair && v.kind != aFile && v.path != "schedule" {
		v.texts = nil
	}
	v.texts = append(v.texts, text)
	return nil
}

// put writes what was given into an object: as the field has it where it fits, else as a text, which the field refuses by its name.
func (v *specValue) put(in map[string]any, field string) error {
	switch v.kind {
	case aSwitch:
		in[field] = v.texts[0] == "true"
	case aNumber:
		in[field] = numberOrText(v.texts[0])
	case aList:
		var all []any
		for one := range strings.SplitSeq(v.texts[0], ",") {
			all = append(all, numberOrText(one))
		}
		in[field] = all
	case aPair, aFile:
		pairs, _ := in[field].(map[string]any)
		if pairs == nil {
			pairs = map[string]any{}
			in[field] = pairs
		}
		for _, text := range v.texts {
			key, value, _ := strings.Cut(text, "=")
			if _, twice := pairs[key]; twice {
				return cli.Usagef("--%s %s: is given twice", v.name, cli.Quote(key))
			}
			pairs[key] = value
			if v.kind == aFile {
				pairs[key] = map[string]string{"file": value}
			}
		}
	default:
		in[field] = v.texts[0]
		if v.path == "schedule" {
			in[field] = v.texts
		}
	}
	return nil
}

func numberOrText(text string) any {
	if n := json.Number(text); json.Valid([]byte(text)) && strings.Trim(text, "0123456789.-") == "" {
		return n
	}
	return text
}

// String is empty: what holds where nothing is said stands in the usage.
func (v *specValue) String() string { return "" }

func (v *specValue) Type() string {
	if len(v.words) > 0 {
		return strings.Join(v.words, "|")
	}
	return v.kind
}

// Accepts says what Set does.
func (v *specValue) Accepts() string {
	switch {
	case v.kind == aSwitch:
		return "true or false"
	case v.kind == aPair, v.kind == aFile:
		return v.kind
	case len(v.words) > 0:
		return strings.Join(v.words, ", ")
	}
	return "a " + v.kind
}

// Quote shows no value of a variable: it may be a secret.
func (v *specValue) Quote(text string) string {
	if key, _, ok := strings.Cut(text, "="); ok && v.path == "env" {
		return fmt.Sprintf("%s=...", cli.Quote(key))
	}
	return cli.Quote(text)
}
