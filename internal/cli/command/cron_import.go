package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/crontab"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// cronImportFlags are the flags of "conch cron import".
type cronImportFlags struct {
	cli.Connection
	crontab.Options
	runTTL  time.Duration
	files   map[string]string // variables whose values stand in files on the nodes
	secrets bool              // they may stand in etcd
	prefix  string
	dryRun  bool
	replace bool
}

const cronImportExample = `  crontab -l | conch cron import crontab --tz Europe/Berlin --dry-run   what would become of it
  conch cron import crontab /etc/crontab --system --tz Europe/Berlin    a user stands before each command
  conch cron import crontab jobs.txt --prefix web1- --run-as www-data`

const cronImportLong = `Makes a job of each line of a crontab that has a command, and says of each line what became of it and what is different
from cron. A line that cannot be meant as cron means it is refused, with what to write instead; the others are
taken. Nothing is guessed. Jobs are named for their commands; one of that name that is another job is left alone,
unless --replace is given, so what was imported is imported again without a change.

cron reads its schedules in the time zone of its host: say it with --tz. Where a variable is a secret by its name nothing is
written, unless --env-file says which file on the nodes holds its value, or --allow-secrets is given.

Exit codes: 0; 1 a line was not taken; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronImport is "conch cron import".
func (c *call) cronImport() *cobra.Command {
	f := &cronImportFlags{}
	cmd := &cobra.Command{
		Use:     "import crontab [FILE|-] [flags]",
		Short:   "Make jobs of a crontab.",
		Long:    cronImportLong,
		Example: cronImportExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			return c.withJobs(cmd.Context(), &f.Connection, func(a *cronJobs) error { return c.importJobs(cmd.Context(), a, f, report) })
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return []cobra.Completion{"crontab"}, cobra.ShellCompDirectiveNoFileComp
			case 1:
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.System, "system", false, "a user stands before each command, as in /etc/crontab and /etc/cron.d")
	flags.StringVar(&f.Options.User, "run-as", "", "as which user the jobs run (default as the daemon)")
	flags.StringVar(&f.Options.TZ, "tz", "", "the time zone of the host whose crontab it is (default UTC)")
	flags.Var(cli.Duration(&f.runTTL, "a duration from 1s to 720h, such as 2h", runTTL), "run-ttl", "how long a run may take (default 24h)")
	flags.Var(cli.Labels(&f.files), "env-file", "KEY=PATH: the value of this variable stands in a file on the nodes; several times for several")
	flags.BoolVar(&f.secrets, "allow-secrets", false, "what may be a secret may stand in etcd")
	flags.StringVar(&f.prefix, "prefix", "", "what the names of the jobs begin with")
	flags.BoolVar(&f.replace, "replace", false, "overwrite jobs of these names")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing; say what would be")
	f.AddFlags(flags)
	completeWords(cmd)
	completeZones(cmd)
	return cmd
}

func runTTL(d time.Duration) bool { return d >= time.Second && d <= 720*time.Hour }

// check reads flags, variables, arguments and the crontab. It contacts nobody.
func (f *cronImportFlags) check(cmd *cobra.Command, env cli.Env, args []string) (crontab.Report, error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return crontab.Report{}, err
	}
	switch {
	case len(args) == 0 || args[0] != "crontab":
		return crontab.Report{}, cli.Usagef("import what? want crontab: conch cron import crontab [FILE|-]")
	case len(args) > 2:
		return crontab.Report{}, cli.Usagef("one file is accepted, got %s too", cli.Quote(args[2]))
	case f.prefix != "" && hold.ValidName(f.prefix) != nil:
		return crontab.Report{}, cli.Usagef("--prefix %s: want the beginning of a name, of letters, digits, '.', '_' and '-'", cli.Quote(f.prefix))
	case f.System && f.Options.User != "":
		return crontab.Report{}, cli.Usagef("--run-as %s: cannot be combined with --system, where each line has its user", cli.Quote(f.Options.User))
	}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		if !strings.HasPrefix(f.files[name], "/") {
			return crontab.Report{}, cli.Usagef("--env-file %s=%s: want a path that begins with /", cli.Quote(name), cli.Quote(f.files[name]))
		}
	}
	f.RunTTL = job.Duration(f.runTTL)
	path, from := "-", env.Stdin
	if len(args) == 2 && args[1] != "-" {
		path = args[1]
		file, err := os.Open(path)
		if err != nil {
			return crontab.Report{}, cli.Usagef("crontab %s: %w", cli.Quote(path), cli.WithoutPath(err))
		}
		defer file.Close()
		from = file
	}
	return f.read(path, from)
}

func (f *cronImportFlags) read(path string, from io.Reader) (crontab.Report, error) {
	report, err := crontab.Parse(from, f.Options)
	switch {
	case errors.Is(err, schedule.ErrZone):
		return report, cli.Usagef("--tz %s: %w", cli.Quote(f.Options.TZ), err)
	case err != nil:
		return report, cli.Usagef("crontab %s: %w", cli.Quote(path), cli.WithoutPath(err))
	}
	for i := range report.Lines {
		l := &report.Lines[i]
		if l.Kind != crontab.KindJob {
			continue
		}
		l.Name = f.prefix + l.Name
		for name := range l.Job.Env {
			if path, ok := f.files[name]; ok {
				l.Job.Env[name] = job.EnvValue{File: path}
			}
		}
		if err := l.Job.Validate(l.Name); err != nil {
			l.Kind, l.Reason = crontab.KindRefused, err.Error()
		}
	}
	return report, nil
}

// importJobs writes the jobs, line by line, and says what became of each.
func (c *call) importJobs(ctx context.Context, a *cronJobs, f *cronImportFlags, report crontab.Report) error {
	exposed := f.exposed(report)
	if exposed != nil && !f.dryRun {
		return exposed
	}
	jobs := 0
	for _, l := range report.Lines {
		var out bytes.Buffer
		switch l.Kind {
		case crontab.KindJob:
			verb, err := a.importLine(ctx, f, l)
			switch {
			case errors.Is(err, hold.ErrNo):
				c.code = hold.CodeNo
				fmt.Fprintf(&out, "%d: not taken: %s\n", l.Number, err)
			case err != nil:
				return err
			default:
				jobs++
				fmt.Fprintf(&out, "%d: %s %s\n", l.Number, verb, l.Name)
			}
		case crontab.KindRefused:
			c.code = hold.CodeNo
			fmt.Fprintf(&out, "%d: not taken: %s\n", l.Number, l.Reason)
		case crontab.KindVariable:
			if len(l.Notes) > 0 {
				fmt.Fprintf(&out, "%d: %s\n", l.Number, shown(l.Variable))
			}
		}
		for _, note := range l.Notes {
			fmt.Fprintf(&out, "    %s\n", note)
		}
		if err := cli.Print(c.env.Stdout, out.Bytes()); err != nil {
			return err
		}
	}
	if err := c.endImport(report, jobs); err != nil {
		return err
	}
	return exposed
}

// exposed refuses what may be a secret, and would stand in etcd.
func (f *cronImportFlags) exposed(report crontab.Report) error {
	for _, l := range report.Lines {
		if _, kept := f.files[l.Variable]; l.Secret && !kept && !f.secrets {
			return refuse(hold.ErrNo, "line %d: %s may be a secret, and would stand in etcd; want --env-file %[2]s=PATH, a file on the nodes, or --allow-secrets; "+
				"nothing was written", l.Number, l.Variable)
		}
	}
	return nil
}

// endImport says what is so for all jobs.
func (c *call) endImport(report crontab.Report, jobs int) error {
	if len(report.Jobs())+len(report.Refused()) == 0 {
		return refuse(hold.ErrNo, "there is no command in the crontab")
	}
	var out bytes.Buffer
	if jobs > 0 {
		for _, note := range report.Notes {
			fmt.Fprintf(&out, "note: %s\n", note)
		}
	}
	return cli.Print(c.env.Stdout, out.Bytes())
}

// importLine writes the job of one line.
func (a *cronJobs) importLine(ctx context.Context, f *cronImportFlags, l crontab.Line) (verb string, err error) {
	decide := func(was store.Stored) (jobChange, error) {
		ch := a.changeTo(was, l.Job)
		if !f.replace && !slices.Contains([]string{jobCreated, jobUnchanged}, ch.verb) {
			return ch, refuse(hold.ErrNo, "job %s exists already, and is another one; --replace overwrites it, --prefix gives other names", l.Name)
		}
		return ch, nil
	}
	was, err := a.look(ctx, l.Name)
	if err != nil {
		return "", err
	}
	ch, err := decide(was)
	if err == nil && !f.dryRun {
		ch, err = a.insist(ctx, ch, decide)
	}
	return ch.verb, err
}
