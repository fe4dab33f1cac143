package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
)

const cronNodesLong = `Prints the nodes whose daemon is registered, and the hosts that are drained. CLOCK is roughly how far a node's clock is off this
machine's: a node writes what its clock says every ten seconds, so a small difference cannot be told from the age of that, and is "ok". A node
whose clock is off the median of its peers' claims nothing, and says so under UNFIT.

Exit codes: 0 a node is registered; 1 none is; 64 usage; 69 etcd cannot say; 77 permission denied.`

// cronNodes is "conch cron nodes".
func (c *call) cronNodes() *cobra.Command {
	var conn cli.Connection
	var output cli.Output
	cmd := &cobra.Command{
		Use:     "nodes [flags]",
		Short:   "Print which nodes run jobs.",
		Long:    cronNodesLong,
		Example: "  conch cron nodes\n  conch cron nodes -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := conn.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			return c.listNodes(cmd.Context(), &conn, &output)
		},
	}
	cmd.Flags().SortFlags = false
	output.AddFlags(cmd.Flags(), "how to print")
	conn.AddFlags(cmd.Flags())
	completeWords(cmd)
	return cmd
}

// nodeLine is one line of the answer.
type nodeLine struct {
	Host       string            `json:"host"`
	State      string            `json:"state"` // up, stopping, down
	Version    string            `json:"version"`
	Labels     map[string]string `json:"labels"`
	Running    int               `json:"running"`     // -1: not known
	MaxRunning int               `json:"max_running"` // -1: not known
	User       string            `json:"user"`
	Users      []string          `json:"users"`
	ClockLeast int64             `json:"clock_ahead_ms_least"` // of this machine's
	ClockMost  int64             `json:"clock_ahead_ms_most"`
	Zones      string            `json:"tzdata"`
	Drained    *record.Stop      `json:"drained"` // null: it is not
	Unfit      string            `json:"unfit"`   // why it claims nothing; "": it does
	Rev        int64             `json:"rev"`     // of its registration: another one for each life; 0: down
}

// cardAge is how old what a node says of its clock may be: it says it every ten seconds, and etcd takes its time.
const cardAge = 13 * time.Second

func (c *call) listNodes(ctx context.Context, conn *cli.Connection, output *cli.Output) error {
	var is *plan.Picture
	var now time.Time
	err := c.withEtcd(ctx, conn, reads(store.LookAreas("")...), func(ctx context.Context, client *clientv3.Client) (err error) {
		is, err = store.Look(ctx, client, "")
		now = time.Now()
		return err
	})
	if err != nil {
		return err
	}
	lines := nodeLines(is, now)
	var out bytes.Buffer
	if output.JSON() {
		for _, one := range lines {
			out.Write(cli.JSONLine(one))
		}
	} else {
		printNodes(&out, lines)
		if is.Pause.By != "" && is.Pause.In(now.UnixMilli()) {
			fmt.Fprintf(&out, "all jobs are paused %s\n", stopText(is.Pause))
		}
	}
	c.code = answer(len(is.Peers) > 0)
	return cli.Print(c.env.Stdout, out.Bytes())
}

// nodeLines are the nodes that are registered, and the hosts that are drained and are not.
func nodeLines(is *plan.Picture, now time.Time) (all []nodeLine) {
	for i := range is.Peers {
		p := &is.Peers[i]
		l := nodeLine{Host: p.Host, State: "up", Version: p.Version, Labels: p.Labels, Running: -1, MaxRunning: -1, Users: []string{}, Rev: p.Rev}
		if p.Carded {
			behind := time.UnixMilli(p.Card.Clock).Sub(now)
			l.Running, l.MaxRunning, l.User, l.Users = p.Card.Running, p.Card.MaxRunning, p.Card.User, append(l.Users, p.Card.Users...)
			l.ClockLeast, l.ClockMost = behind.Milliseconds(), (behind + cardAge).Milliseconds()
			l.Zones, l.Unfit = p.Card.Zones, p.Card.Unfit
		}
		if p.Card.Stopping {
			l.State = "stopping"
		}
		if p.Drained {
			l.Drained = &p.Drain
		}
		all = append(all, l)
	}
	for _, host := range slices.Sorted(maps.Keys(is.Drains)) {
		if drain := is.Drains[host]; is.Peer(host) == nil {
			all = append(all, nodeLine{Host: host, State: "down", Running: -1, MaxRunning: -1, Users: []string{}, Drained: &drain})
		}
	}
	for i := range all {
		if all[i].Labels == nil {
			all[i].Labels = map[string]string{}
		}
	}
	return all
}

// clockText is how far a clock is off, as far as that can be told.
func (l *nodeLine) clockText() string {
	least, most := time.Duration(l.ClockLeast)*time.Millisecond, time.Duration(l.ClockMost)*time.Millisecond
	switch {
	case l.MaxRunning < 0:
		return "-"
	case least > 0:
		return brief(least.Round(time.Second)) + " ahead"
	case most < 0:
		return brief(-most.Round(time.Second)) + " behind"
	}
	return "ok"
}

func (l *nodeLine) roomText() string {
	if l.MaxRunning < 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", l.Running, l.MaxRunning)
}

func printNodes(w io.Writer, all []nodeLine) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no node is registered")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tSTATE\tVERSION\tRUNNING\tUSERS\tCLOCK\tTZDATA\tLABELS\tDRAINED\tUNFIT")
	for i := range all {
		l, drained := &all[i], "-"
		if l.Drained != nil {
			drained = stopText(*l.Drained)
		}
		var users []string
		for _, u := range slices.Concat([]string{l.User}, l.Users) {
			if u != "" {
				users = append(users, shown(u))
			}
		}
		labels := host{Labels: l.Labels}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shown(l.Host), l.State, dash(shown(l.Version)), l.roomText(),
			dash(strings.Join(users, ",")), l.clockText(), dash(shown(l.Zones)), dash(labels.labelText()), drained, dash(shown(l.Unfit)))
	}
	_ = t.Flush() // into memory
}
