package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// cronRunFlags are the flags of "conch cron run".
type cronRunFlags struct {
	cli.Connection
	wait, follow bool
	why          string
	within       time.Duration
	output       cli.Output
}

const cronRunLong = `Asks for a start of the job now, beside its ticks, which stay what they are. The first node that may takes it; a job with
"run_on": "all" is started once on each node that is there. Overlap counts: under "forbid" it waits for the end of what runs. If
nobody takes it within --within it is recorded as missed.

A job or a cluster that is paused is not started: 75, and who paused it.

Exit codes: 0 the request stands, or with --wait: it ended with success; 1 there is no such job, or with --wait: it ended otherwise; 64
usage; 69 etcd unreachable; 75 paused, or no node is there; 77 permission denied; 128+n signal n came while waiting. A request stays
where nobody waits for it any more.`

// cronRun is "conch cron run".
func (c *call) cronRun() *cobra.Command {
	f := &cronRunFlags{within: time.Minute}
	cmd := &cobra.Command{
		Use:   "run NAME [flags]",
		Short: "Start a job now, beside its ticks.",
		Long:  cronRunLong,
		Example: `  conch cron run backup                       ask, and print the id of the start
  conch cron run backup --wait                and wait for its end
  conch cron run backup --follow --why "disk was full"   and print its output`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			name, err := jobName(cmd, args)
			if err = cmp.Or(err, checkWhy(f.why)); err != nil {
				return err
			}
			return c.runJob(cmd.Context(), f, name)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.wait, "wait", false, "wait for its end, and exit with 0 if that is success")
	flags.BoolVar(&f.follow, "follow", false, "the same, and print the end of its output then")
	flags.StringVar(&f.why, "why", "", "a reason, for who reads the result")
	flags.Var(cli.Duration(&f.within, "a duration above 0, such as 1m", cli.Positive), "within", "how long somebody may take to start it")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, 1)
	completeWords(cmd)
	return cmd
}

// runNeeds are what it takes to ask for starts of a job.
func runNeeds(name string) []cli.Need {
	keys := []string{record.Range(record.Fires, name), record.Range(record.Results, name)}
	return append(reads(append(keys, store.LookAreas(name)...)...), writes(record.Range(record.Wants, name))...)
}

// askedLine is what is printed of a request.
type askedLine struct {
	Job   string `json:"job"`
	ID    string `json:"id"`
	Tick  int64  `json:"tick"`
	RunID string `json:"run_id"`
	Until string `json:"until"`
}

func (c *call) runJob(ctx context.Context, f *cronRunFlags, name string) error {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return err
	}
	defer client.Close()
	log := cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat)
	now := time.Now()
	want := record.Want{Kind: record.Manual, Attempt: 1, Until: now.Add(f.within).UnixMilli(), By: signed(f.why)}
	var ids []record.ID
	err = c.once(ctx, &f.Connection, client, name, func(ctx context.Context) error {
		ids, err = askFor(ctx, client, name, now.Unix(), want)
		return err
	})
	if err != nil {
		return err
	}
	if !f.wait && !f.follow {
		return c.printAsked(f, name, ids, want)
	}
	c.code, err = c.stream(ctx, func(ctx context.Context) error {
		good, err := c.awaitAll(ctx, f, client, name, ids, log)
		if err == nil && !good {
			return errBadEnd
		}
		return err
	})
	if errors.Is(err, errBadEnd) {
		c.code, err = hold.CodeNo, nil
	}
	if c.code > hold.CodeNo {
		log.Info("nobody waits any more: the request stays, and what came of it", "job", name)
	}
	return err
}

// errBadEnd is returned when what was waited for ended, and not with success.
var errBadEnd = errors.New("it ended badly")

// once has requests for starts of a job put, each at most once: what etcd did not answer is not repeated, since the job might be started
// twice.
func (c *call) once(ctx context.Context, conn *cli.Connection, client *clientv3.Client, name string, ask func(context.Context) error) error {
	err := conn.Reach(ctx, client, func(ctx context.Context) error { _, err := lookJob(ctx, client, name); return err })
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, conn.DialTimeout)
		defer cancel()
		err = cli.Classify(ask(ctx))
	}
	if errors.Is(err, store.ErrUndecided) {
		err = fmt.Errorf("%w; whether the request has arrived is not known, see conch cron ps %s", err, name)
	}
	return lacking(client, conn.Settings, runNeeds(name), err)
}

// askFor puts a request for each start of a tick that there has to be: one, or one on each node that a job is for which runs on all.
func askFor(ctx context.Context, client *clientv3.Client, name string, tick int64, want record.Want) (stands []record.ID, err error) {
	for {
		k, err := lookJob(ctx, client, name)
		if err == nil {
			err = cmp.Or(k.readable(), k.inPause(time.Now()))
		}
		if err != nil {
			return stands, err
		}
		hosts, err := k.hosts()
		if err != nil {
			return stands, err
		}
		for _, host := range hosts {
			if slices.ContainsFunc(stands, func(id record.ID) bool { return id.Tick == tick && id.Host == host }) {
				continue
			}
			var id record.ID
			ask := store.Asking{Job: name, Tick: tick, Host: host, Want: want, Room: k.follow(), SpecRev: k.SpecRev, PauseRev: k.PauseRev}
			if id, err = store.Ask(ctx, client, ask); err != nil {
				break
			}
			stands = append(stands, id)
		}
		if !errors.Is(err, store.ErrChanged) {
			return stands, err
		}
	}
}

// follow is how many starts may follow one in its place: retries, and one that is queued.
func (k *pictured) follow() int {
	n := max(0, k.job.LostAgain-1)
	if r := k.spec.Retry; r != nil {
		n = max(n, r.Max)
	}
	if k.job.Overlap == plan.QueueOne || k.job.Overlap == plan.Replaces {
		n++
	}
	return n
}

// hosts are where one start each is to be: "" is wherever.
func (k *pictured) hosts() (all []string, err error) {
	if !k.job.OnAll {
		return []string{""}, nil
	}
	for i := range k.Peers {
		if p := &k.Peers[i]; p.Candidate(k.spec) {
			all = append(all, p.Host)
		}
	}
	if len(all) == 0 {
		return nil, refuse(hold.ErrNotAcquired, "job %s runs on all nodes that it selects, and none is registered", k.name)
	}
	return all, nil
}

func (c *call) printAsked(f *cronRunFlags, name string, ids []record.ID, want record.Want) error {
	var out strings.Builder
	for _, id := range ids {
		until := stamp(time.UnixMilli(want.Until))
		if f.output.JSON() {
			out.Write(cli.JSONLine(askedLine{Job: name, ID: id.String(), Tick: id.Tick, RunID: name + "/" + id.String(), Until: until}))
		} else {
			fmt.Fprintf(&out, "%s/%s: asked for; recorded as missed if nobody starts it until %s\n", name, id, until)
		}
	}
	return cli.Print(c.env.Stdout, []byte(out.String()))
}

// awaitAll waits for the ends of some starts, and prints them. good is whether all ended with success.
func (c *call) awaitAll(ctx context.Context, f *cronRunFlags, client *clientv3.Client, name string, ids []record.ID, log *slog.Logger) (good bool, err error) {
	good = true
	for _, id := range ids {
		log.Info("asked for", "job", name, "id", id.String())
		w := &awaited{job: name, id: id, until: time.Now().Add(f.within), log: log}
		r, err := w.end(ctx, client)
		if err != nil {
			return false, lacking(client, f.Settings, runNeeds(name), err)
		}
		good = good && r.Status == record.Success
		text := resultLine(&r, f.output.JSON())
		if f.follow && !f.output.JSON() {
			text = append([]byte(tailText(&r)), text...)
		}
		if err := printLine(c.env.Stdout, text); err != nil {
			return false, err
		}
	}
	return good, nil
}
