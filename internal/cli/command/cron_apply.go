package command

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/manifest"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// setLabel is the label that says to which set of files a job belongs.
const setLabel = "conch/set"

// cronApplyFlags are the flags of "conch cron apply".
type cronApplyFlags struct {
	cli.Connection
	files  jobFiles
	set    string
	prune  bool
	dryRun bool
	diff   bool
}

const cronApplyExample = `  conch cron apply -f jobs/ --dry-run --diff     what would change
  conch cron apply -f jobs/                      make it so
  conch cron apply -f jobs/ --set web --prune    and remove what is in the set web, and in no file any more
  conch cron export | conch --endpoints other:2379 cron apply -f -`

const cronApplyLong = `Prints a line for each job: created, updated, unchanged or removed, and its name. All files are checked before anything
is written; each job is then written by itself, if it is still the one that was looked at. One that is as the files
say is not written at all.

A job's pause, and who added it, are no part of the files: they stay. No edit makes a tick of the past due.

--set NAME puts the label ` + setLabel + ` on each job. --prune removes the jobs with that label that are in no file; a job
of another set is refused.

Exit codes: 0; 1 a job cannot be meant, or is refused: nothing was written; 64 usage; 69 etcd unreachable; 77 permission
denied.`

// cronApply is "conch cron apply".
func (c *call) cronApply() *cobra.Command {
	f := &cronApplyFlags{}
	cmd := &cobra.Command{
		Use:     "apply -f FILE|DIR|- [flags]",
		Short:   "Make jobs what files say.",
		Long:    cronApplyLong,
		Example: cronApplyExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, faults, err := f.check(cmd, c.env)
			if err != nil {
				return err
			}
			if len(faults) > 0 {
				return c.refuseAll(f.LogFormat, faults)
			}
			return c.withJobs(cmd.Context(), &f.Connection, func(a *cronJobs) error {
				return c.applyJobs(cmd.Context(), &application{cronJobs: a, cronApplyFlags: f, entries: entries})
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.files.declare(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing; say what would be")
	flags.BoolVar(&f.diff, "diff", false, "print what changes, as a unified diff of the JSON")
	flags.StringVar(&f.set, "set", "", "the jobs belong to this set: a label")
	flags.BoolVar(&f.prune, "prune", false, "remove jobs of the set that are in no file; with --set")
	f.AddFlags(flags)
	completeWords(cmd)
	return cmd
}

func (f *cronApplyFlags) check(cmd *cobra.Command, env cli.Env) ([]manifest.Entry, []error, error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return nil, nil, err
	}
	switch {
	case cmd.Flags().Changed("set") && hold.ValidName(f.set) != nil:
		return nil, nil, cli.Usagef("--set %s: want a name of letters, digits, '.', '_' and '-'", cli.Quote(f.set))
	case f.prune && f.set == "":
		return nil, nil, cli.Usagef("--prune: want --set NAME too: only jobs of a set are removed")
	}
	entries, faults, err := f.files.read(env)
	if err == nil && len(entries)+len(faults) == 0 {
		// Files that are empty by a mistake would remove all there is.
		err = refuse(hold.ErrNo, "no job was read: nothing was done; conch cron rm removes jobs")
	}
	return entries, faults, err
}

// refuseAll says why nothing is written, a line each.
func (c *call) refuseAll(logFormat string, faults []error) error {
	for _, fault := range faults {
		cli.Say(c.env, logFormat, slog.LevelError, cli.OneLine(fault))
	}
	return refuse(hold.ErrNo, "%d to mend; nothing was written", len(faults))
}

// application is one "conch cron apply".
type application struct {
	*cronJobs
	*cronApplyFlags
	entries []manifest.Entry
}

func (c *call) applyJobs(ctx context.Context, a *application) error {
	changes, err := a.plan(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for i, ch := range changes {
		if err := a.refused(ch); err != nil {
			faults = append(faults, fmt.Errorf("%s%w", a.whence(i), err))
		}
	}
	if len(faults) > 0 {
		return c.refuseAll(a.LogFormat, faults)
	}
	for i, ch := range changes {
		text := ""
		if a.diff && ch.verb != jobUnchanged {
			text = ch.diff()
		}
		if !a.dryRun {
			ch, err = a.insist(ctx, ch, func(was store.Stored) (jobChange, error) { return a.decide(i, was) })
		}
		if err != nil {
			return err
		}
		if err := cli.Print(c.env.Stdout, fmt.Appendf(nil, "%s%s %s\n", text, ch.verb, ch.was.Name)); err != nil {
			return err
		}
	}
	return nil
}

// whence is where a change stands in the files; empty for one that does not.
func (a *application) whence(i int) string {
	if i < len(a.entries) {
		return a.entries[i].At + ": " + a.entries[i].Name + ": "
	}
	return ""
}

// plan is what there is to do: for each entry, and then for what is removed.
func (a *application) plan(ctx context.Context) (changes []jobChange, err error) {
	stored := map[string]store.Stored{}
	if a.prune {
		all, err := a.all(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			stored[s.Name] = s
		}
	}
	for _, e := range a.entries {
		was, known := stored[e.Name]
		if !known && a.prune {
			was.Name = e.Name
		} else if !known {
			if was, err = a.look(ctx, e.Name); err != nil {
				return nil, err
			}
		}
		changes = append(changes, a.changeTo(was, a.labelled(e.Job, was)))
		delete(stored, e.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if ch := (jobChange{was: stored[name], verb: jobRemoved}); setOf(ch.was) == a.set {
			changes = append(changes, ch)
		}
	}
	return changes, nil
}

// decide is what is to be done about the i-th of them, as it stands now.
func (a *application) decide(i int, was store.Stored) (jobChange, error) {
	ch := jobChange{was: was, verb: jobRemoved}
	if i < len(a.entries) {
		ch = a.changeTo(was, a.labelled(a.entries[i].Job, was))
		return ch, a.refused(ch)
	}
	if was.Rev != 0 && setOf(was) != a.set {
		ch.verb = jobUnchanged // it has left the set
	}
	return ch, nil
}

// refused says why a change must not be.
func (a *application) refused(ch jobChange) error {
	if set := setOf(ch.was); ch.next != nil && set != "" && a.set != "" && set != a.set {
		return refuse(hold.ErrNo, "it belongs to the set %s: apply it with --set %s, or remove it first", shown(set), shown(set))
	}
	return ch.check(a.now())
}

// labelled is a job in its set: that of the flag, or else the one that it is in.
func (a *application) labelled(j *job.Job, was store.Stored) *job.Job {
	set := a.set
	if set == "" {
		set = setOf(was)
	}
	if _, said := j.Labels[setLabel]; set == "" || said && a.set == "" {
		return j
	}
	one := *j
	one.Labels = maps.Clone(j.Labels)
	if one.Labels == nil {
		one.Labels = map[string]string{}
	}
	one.Labels[setLabel] = set
	return &one
}

// setOf is the set that a job in etcd belongs to; empty: to none.
func setOf(s store.Stored) string {
	if s.Rev == 0 {
		return ""
	}
	j, err := job.Parse(s.Name, s.Value)
	if err != nil {
		return ""
	}
	return j.Labels[setLabel]
}
