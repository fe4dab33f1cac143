package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// pauseFlags are the flags of "conch cron pause" and "conch cron resume".
type pauseFlags struct {
	cli.Connection
	all    bool
	last   time.Duration
	why    string
	output cli.Output
	names  []string
}

const cronPauseLong = `Has nothing of the named jobs claimed any more, or with --all of any job, until somebody resumes them or --for is over. When it has
said so, that is so on every node: a claim that does not know of the pause fails. What runs goes on, and is listed: conch cron kill ends it.
What is due meanwhile is one record, skipped, and is not caught up with.

Exit codes: 0 paused; 1 there is no such job; 64 usage; 69 etcd unreachable; 77 permission denied.`

const cronResumeLong = `Ends the pause of the named jobs, or with --all that of the cluster; a job that is paused by itself stays so. What was due in the
pause is recorded as skipped, and the next tick is the first that counts.

Exit codes: 0 it goes on, or was not paused; 1 there is no such job; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronPause is "conch cron pause".
func (c *call) cronPause() *cobra.Command {
	f := &pauseFlags{}
	cmd := &cobra.Command{
		Use:   "pause NAME...|--all [flags]",
		Short: "Have nothing of a job started, or of any.",
		Long:  cronPauseLong,
		Example: `  conch cron pause backup --for 2h --why "moving the disk"
  conch cron pause --all --why "power is out in room 3"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, c.env, args); err != nil {
				return err
			}
			return c.changePause(cmd.Context(), f, true)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(cli.Duration(&f.last, "a duration above 0, such as 2h", cli.Positive), "for", "how long (default until it is resumed)")
	flags.StringVar(&f.why, "why", "", "a reason, for who finds nothing started")
	c.declarePause(cmd, f)
	return cmd
}

// cronResume is "conch cron resume".
func (c *call) cronResume() *cobra.Command {
	f := &pauseFlags{}
	cmd := &cobra.Command{
		Use:     "resume NAME...|--all [flags]",
		Short:   "End a pause.",
		Long:    cronResumeLong,
		Example: "  conch cron resume backup\n  conch cron resume --all",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, c.env, args); err != nil {
				return err
			}
			return c.changePause(cmd.Context(), f, false)
		},
	}
	cmd.Flags().SortFlags = false
	c.declarePause(cmd, f)
	return cmd
}

// declarePause declares what both have.
func (c *call) declarePause(cmd *cobra.Command, f *pauseFlags) {
	cmd.Flags().BoolVar(&f.all, "all", false, "the whole cluster: all jobs, and those to come")
	f.output.AddFlags(cmd.Flags(), "how to print")
	f.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, pauseNames)
	completeWords(cmd)
}

// pauseNames is how many jobs one command line may name.
const pauseNames = 1000

func (f *pauseFlags) check(cmd *cobra.Command, env cli.Env, args []string) error {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return err
	}
	switch {
	case f.all && len(args) > 0:
		return cli.Usagef("--all: goes without names, got %s", cli.Quote(args[0]))
	case !f.all && len(args) == 0:
		return cli.Usagef("no job given: %s", usageLine(cmd))
	case len(args) > pauseNames:
		return cli.Usagef("%d jobs given, at most %d are accepted", len(args), pauseNames)
	}
	for _, name := range args {
		if err := hold.ValidName(name); err != nil {
			return err
		}
	}
	f.names = args
	return checkWhy(f.why)
}

// pauseLine is one line of the answer.
type pauseLine struct {
	Job    string      `json:"job"` // "": the whole cluster
	Paused bool        `json:"paused"`
	Was    bool        `json:"was"` // paused, before
	Rev    int64       `json:"rev"` // no claim after it is made that does not know of it
	Pause  record.Stop `json:"pause"`
	Runs   []runLine   `json:"runs"` // what runs yet
}

// changePause does it for one name after the other: what was done stays where a later one fails, and was said.
func (c *call) changePause(ctx context.Context, f *pauseFlags, pause bool) error {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return err
	}
	defer client.Close()
	names := f.names
	if f.all {
		names = []string{""}
	}
	now := time.Now()
	stop := record.Stop{By: caller(), Why: f.why, At: now.UnixMilli()}
	if f.last > 0 {
		stop.Until = now.Add(f.last).UnixMilli()
	}
	for _, name := range names {
		line := pauseLine{Job: name, Paused: pause, Pause: stop}
		err := reached(ctx, &f.Connection, client, pauseNeeds(name), func(ctx context.Context, client *clientv3.Client) error {
			return line.change(ctx, client, now)
		})
		if err != nil {
			return err
		}
		text := []byte(line.text())
		if f.output.JSON() {
			text = cli.JSONLine(line)
		}
		if err := cli.Print(c.env.Stdout, text); err != nil {
			return err
		}
	}
	return nil
}

func pauseNeeds(name string) []cli.Need {
	key := record.JobKey(name)
	if name == "" {
		key = record.Pause
	}
	return append(reads(store.LookAreas(name)...), writes(key)...)
}

// change makes the change, and looks what runs yet. Done a second time it finds that it is done.
func (l *pauseLine) change(ctx context.Context, client *clientv3.Client, now time.Time) (err error) {
	stop := l.Pause
	if l.Job == "" {
		l.Rev, err = store.Change(ctx, client, record.Pause, func(value []byte) (string, bool, error) { return l.ofCluster(value, stop, now) })
	} else {
		l.Rev, err = store.Change(ctx, client, record.JobKey(l.Job), func(value []byte) (string, bool, error) {
			if value == nil {
				return "", false, noSuchJob(ctx, client, l.Job)
			}
			return l.ofJob(value, stop, now)
		})
	}
	if err != nil {
		return err
	}
	is, err := store.Look(ctx, client, l.Job)
	if err == nil {
		is.Asked = nil
		l.Runs = append([]runLine{}, runLines(is)...)
	}
	return err
}

// ofCluster is the value of the cluster's pause. One that is over stays: what was due meanwhile is reckoned from it.
func (l *pauseLine) ofCluster(value []byte, stop record.Stop, now time.Time) (changed string, same bool, err error) {
	is, ok := record.Decode[record.Stop](value)
	l.Was = value != nil && (!ok || is.In(now.UnixMilli()))
	switch {
	case l.Paused:
		return record.Encode(stop), ok && is == stop, nil
	case !l.Was:
		l.Pause = is
		return "", true, nil
	}
	is.By, is.Resumed = cmp.Or(is.By, stop.By), now.UnixMilli()
	l.Pause = is
	return record.Encode(is), false, nil
}

// ofJob is the spec of a job with the pause changed, and nothing else.
func (l *pauseLine) ofJob(value []byte, stop record.Stop, now time.Time) (changed string, same bool, err error) {
	spec, err := job.Parse(l.Job, value)
	if err != nil {
		return "", false, refuse(hold.ErrNo, "job %s cannot be read, and no node runs it: %v", l.Job, err)
	}
	l.Was = spec.PausedAt(now)
	if l.Was {
		l.Pause = pausedAs(spec.Paused)
	}
	switch {
	case l.Paused:
		l.Pause = stop
		spec.Paused = &job.Paused{By: stop.By, Why: stop.Why, At: time.UnixMilli(stop.At).UTC()}
		if stop.Until > 0 {
			until := time.UnixMilli(stop.Until).UTC()
			spec.Paused.Until = &until
		}
	case !l.Was:
		return "", true, nil
	default:
		at := now.UTC().Truncate(time.Millisecond)
		spec.Paused, spec.ResumedAt = nil, &at
		l.Pause.Resumed = at.UnixMilli()
	}
	changed = string(spec.Encode())
	return changed, changed == string(value), spec.Validate(l.Job)
}

// pausedAs is a job's pause in the form of the cluster's.
func pausedAs(p *job.Paused) record.Stop {
	s := record.Stop{By: p.By, Why: p.Why, At: p.At.UnixMilli()}
	if p.Until != nil {
		s.Until = p.Until.UnixMilli()
	}
	return s
}

// text is the answer for people.
func (l *pauseLine) text() string {
	what, is := "all jobs", "are"
	if l.Job != "" {
		what, is = l.Job, "is"
	}
	var b strings.Builder
	switch {
	case l.Paused && l.Pause.Until > 0:
		fmt.Fprintf(&b, "%s %s paused until %s: nothing is started after revision %d\n", what, is, stamp(time.UnixMilli(l.Pause.Until)), l.Rev)
	case l.Paused:
		fmt.Fprintf(&b, "%s %s paused: nothing is started after revision %d, until somebody resumes\n", what, is, l.Rev)
	case l.Was:
		fmt.Fprintf(&b, "%s %s resumed: %s paused %s\n", what, is, map[string]string{"is": "it was", "are": "they were"}[is], stopText(l.Pause))
	default:
		fmt.Fprintf(&b, "%s %s not paused\n", what, is)
	}
	if l.Paused {
		for _, r := range l.Runs {
			fmt.Fprintf(&b, "  %s/%s goes on, on %s (%s)\n", shown(r.Job), r.ID, shown(r.Host), r.State)
		}
	}
	return b.String()
}
