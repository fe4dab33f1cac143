package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// flagRow is a row of the table of flags in docs/conchd.md: the flag, its variables, its default.
var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)[^`]*` \\|([^|]*)\\|([^|]*)\\|[^|]+\\|$")

// What --help lists is what the table lists, with the variables and the defaults that it has.
func TestTheFlagsOfTheDocumentAreThoseOfTheDaemon(t *testing.T) {
	t.Parallel()
	set := pflag.NewFlagSet("conchd", pflag.ContinueOnError)
	(&flags{}).declare(set)
	rows := map[string][]string{}
	for _, m := range flagRow.FindAllStringSubmatch(read(t, "docs/conchd.md"), -1) {
		if rows[m[1]] != nil {
			t.Errorf("docs/conchd.md has --%s twice", m[1])
		}
		rows[m[1]] = []string{strings.TrimSpace(m[2]), strings.TrimSpace(m[3])}
	}
	set.VisitAll(func(f *pflag.Flag) {
		row := rows[f.Name]
		delete(rows, f.Name)
		if row == nil {
			t.Errorf("docs/conchd.md has no --%s", f.Name)
			return
		}
		var variables []string
		for _, name := range cli.Variables(f) {
			variables = append(variables, "`"+name+"`")
		}
		if got, want := row[0], strings.Join(variables, ", "); got != want {
			t.Errorf("--%s: the variables are %q in docs/conchd.md, %q in the program", f.Name, got, want)
		}
		if got, want := strings.Trim(row[1], "`"), f.DefValue; got != want && (got != "" || want != "false" && want != "[]") {
			t.Errorf("--%s: the default is %q in docs/conchd.md, %q in the program", f.Name, got, want)
		}
	})
	for name := range rows {
		t.Errorf("docs/conchd.md has --%s, which conchd has not", name)
	}
}

// unit are the settings of the unit, by name; of one that is there more than once, the last.
func unit(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(read(t, "deploy/systemd/conchd.service")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			all[name] = value
		}
	}
	return all
}

// The unit gives conchd the time that it takes to stop, and does not end its jobs before it.
func TestTheUnitLetsRunsFinish(t *testing.T) {
	t.Parallel()
	u := unit(t)
	for name, want := range map[string]string{
		"Type": "notify", "KillMode": "mixed", "Restart": "always", "OOMPolicy": "continue", "StartLimitIntervalSec": "0", "RestartPreventExitStatus": "64",
	} {
		if u[name] != want {
			t.Errorf("%s=%s, want %s", name, u[name], want)
		}
	}
	duration := func(name string) time.Duration {
		d, err := time.ParseDuration(u[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return d
	}
	// Draining, then the end of what runs, and results, the registration and the guard, each with its own bound.
	if got, need := duration("TimeoutStopSec"), cron.DefaultDrainTimeout+10*time.Second+15*time.Second+5*time.Second+partWithin; got < need {
		t.Errorf("TimeoutStopSec=%v: stopping may take %v", got, need)
	}
	// The daemon says every 15 s at the latest that it lives.
	if got := duration("WatchdogSec"); got < 30*time.Second {
		t.Errorf("WatchdogSec=%v is too short", got)
	}
	// The document shows the unit's reasons for these.
	text := read(t, "docs/conchd.md")
	for _, name := range []string{"KillMode=mixed", "TimeoutStopSec", "OOMPolicy=continue", "WatchdogSec", "RestartPreventExitStatus=64", "StartLimitIntervalSec=0"} {
		if !strings.Contains(text, name) {
			t.Errorf("docs/conchd.md does not say why %s", name)
		}
	}
}
