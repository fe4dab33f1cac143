package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

const cronPsLong = `Prints what runs, of one job or of all, and the requests that wait: starts that somebody asked for, retries, and ticks that wait for the
run before them. The state of what runs is "running"; "ending" where somebody asked for its end; "settling" where its run marker is gone
and nobody has said yet how it ended: its daemon may be gone, and a peer will settle it.

Exit codes: 0 something runs or waits; 1 nothing does; 64 usage; 69 etcd cannot say; 77 permission denied.`

// cronPs is "conch cron ps".
func (c *call) cronPs() *cobra.Command {
	var conn cli.Connection
	var output cli.Output
	cmd := &cobra.Command{
		Use:     "ps [NAME] [flags]",
		Short:   "Print what runs, and what waits to run.",
		Long:    cronPsLong,
		Example: "  conch cron ps\n  conch cron ps backup -o json",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := conn.Bind(cmd.Flags(), c.env)
			name := ""
			if len(args) > 0 && err == nil {
				name, err = jobName(cmd, args)
			}
			if err != nil {
				return err
			}
			return c.listRuns(cmd.Context(), &conn, &output, name)
		},
	}
	cmd.Flags().SortFlags = false
	output.AddFlags(cmd.Flags(), "how to print")
	conn.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(&conn, record.Jobs, 1)
	completeWords(cmd)
	return cmd
}

// runLine is one line of the answer.
type runLine struct {
	Job     string `json:"job"`
	ID      string `json:"id"`
	State   string `json:"state"` // running, ending, settling, waiting
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
	Host    string `json:"host"`  // waiting: ""
	Rev     int64  `json:"rev"`   // the fencing token; waiting: 0
	Since   string `json:"since"` // of the claim, by that host's clock; waiting: not before, "" is now
	Until   string `json:"until"` // waiting: when it is recorded as missed; "": never
	By      string `json:"by"`    // who asked for it, and why; ending: who asked for the end
}

// States of a start whose end is not known, and of a request.
const (
	stateRunning  = "running"
	stateEnding   = "ending"
	stateSettling = "settling"
	stateWaiting  = "waiting"
)

func (c *call) listRuns(ctx context.Context, conn *cli.Connection, output *cli.Output, name string) error {
	var is *plan.Picture
	err := c.withEtcd(ctx, conn, reads(store.LookAreas(name)...), func(ctx context.Context, client *clientv3.Client) (err error) {
		is, err = store.Look(ctx, client, name)
		return err
	})
	if err != nil {
		return err
	}
	lines := runLines(is)
	var out bytes.Buffer
	if output.JSON() {
		for _, one := range lines {
			out.Write(cli.JSONLine(one))
		}
	} else {
		printRuns(&out, lines, time.Now())
	}
	c.code = answer(len(lines) > 0)
	return cli.Print(c.env.Stdout, out.Bytes())
}

func runLines(is *plan.Picture) (all []runLine) {
	for i := range is.Starts {
		s := &is.Starts[i]
		all = append(all, runLine{
			Job: s.Job, ID: s.ID.String(), State: stateOf(s), Kind: string(s.Kind), Attempt: s.Attempt, Host: s.Host, Rev: s.Rev, Since: stampMS(s.At), By: s.By,
		})
		if s.Kill != nil {
			all[len(all)-1].By = killerOf(s.Kill)
		}
	}
	for _, a := range is.Asked {
		all = append(all, runLine{
			Job: a.Job, ID: a.ID.String(), State: stateWaiting, Kind: string(a.Kind), Attempt: a.Attempt, Host: a.ID.Host,
			Since: stampMS(a.After), Until: stampMS(a.Until), By: a.By,
		})
	}
	return all
}

// stateOf is how it stands with a start whose end is not known.
func stateOf(s *plan.Pictured) string {
	switch {
	case !s.Alive:
		return stateSettling
	case s.Kill != nil:
		return stateEnding
	}
	return stateRunning
}

func killerOf(k *record.Kill) string {
	if k.Why == "" {
		return k.By
	}
	return k.By + ": " + k.Why
}

// stampMS is a moment in unix milliseconds; "" is none.
func stampMS(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return hold.EscapeCut(stamp(time.UnixMilli(ms)), 40)
}

func printRuns(w io.Writer, all []runLine, now time.Time) {
	if len(all) == 0 {
		fmt.Fprintln(w, "nothing runs, and nothing waits to run")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tID\tSTATE\tKIND\tATTEMPT\tHOST\tSINCE\tFOR\tREV\tBY")
	for _, l := range all {
		since, rev := "-", "-"
		if at, err := time.Parse(time.RFC3339, l.Since); err == nil && l.State != stateWaiting {
			since = brief(max(0, now.Sub(at)).Truncate(time.Second))
		}
		if l.Rev > 0 {
			rev = fmt.Sprint(l.Rev)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", shown(l.Job), l.ID, l.State, dash(shown(l.Kind)), l.Attempt,
			dash(shown(l.Host)), dash(l.Since), since, rev, dash(shown(l.By)))
	}
	_ = t.Flush() // into memory
}
