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

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view/live"
)

// hostsFlags are the flags of "conch hosts".
type hostsFlags struct {
	cli.Connection
	watch  bool
	labels string
	fits   coord.Selector // labels, read
	output cli.Output
}

const hostsLong = `Prints the hosts that have registered below ` + coord.HostsPrefix + ` and are up. With --watch: those, and then
each host that comes, goes, or says something else of itself, until interrupted.

Exit codes: 0 a host is up; 1 none is, or none with these labels; 64 usage; 69 etcd cannot say; 77
permission denied. --watch ends with 128+n by signal n, and with 0 when nobody reads its output any more.`

// hosts is "conch hosts".
func (c *call) hosts() *cobra.Command {
	f := &hostsFlags{}
	cmd := &cobra.Command{
		Use:   "hosts [flags]",
		Short: "Print which hosts are up, and each that comes and goes.",
		Long:  hostsLong,
		Example: `  conch hosts                   which hosts are up
  conch hosts -l zone=a,role=db  those with both labels
  conch hosts --watch -o json    each change, one object a line`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err = f.check(cmd, c.env); err != nil {
				return err
			}
			if f.watch {
				c.code, err = c.watchHosts(cmd.Context(), f)
			} else {
				c.code, err = c.listHosts(cmd.Context(), f)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.labels, "selector", "l", "", "only hosts with all of these labels: key=value, joined by commas")
	flags.BoolVar(&f.watch, "watch", false, "print each change, until interrupted")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	completeWords(cmd)
	cmd.AddCommand(c.register())
	return cmd
}

// check reads flags and variables. It contacts nobody.
func (f *hostsFlags) check(cmd *cobra.Command, env cli.Env) (err error) {
	if err = f.Bind(cmd.Flags(), env); err != nil {
		return err
	}
	if f.fits, err = coord.ParseSelector(f.labels); err != nil {
		return cli.Usagef("--%s", strings.TrimPrefix(err.Error(), coord.ErrInvalidOption.Error()+": "))
	}
	return nil
}

// hostsNeeds are what it takes to look at hosts.
var hostsNeeds = []cli.Need{{Key: coord.HostsPrefix, Writes: false}}

// host is one host as a program reads it.
type host struct {
	HostUUID   string            `json:"host_uuid"`
	Hostname   string            `json:"hostname"`
	Hypervisor string            `json:"hypervisor"`
	Version    string            `json:"version"`
	Started    string            `json:"started"` // RFC 3339; "": not known
	Labels     map[string]string `json:"labels"`
	Rev        int64             `json:"rev"` // create revision of its key: another one for each life
}

func hostOf(m coord.HostMetadata, rev int64) host {
	h := host{HostUUID: m.HostUUID, Hostname: m.Hostname, Hypervisor: m.Hypervisor, Version: m.Version, Labels: m.Labels, Rev: rev}
	if h.Labels == nil {
		h.Labels = map[string]string{}
	}
	if m.StartedAt > 0 {
		h.Started = time.Unix(0, m.StartedAt).UTC().Format(time.RFC3339)
	}
	return h
}

// labelText is the labels as the flag takes them, safe on a terminal.
func (h host) labelText() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
		all = append(all, shown(key)+"="+shown(h.Labels[key]))
	}
	return strings.Join(all, ",")
}

// shown is text from etcd as a person can read it: one line, and not a long one.
func shown(s string) string { return hold.EscapeCut(s, 100) }

// listedHost is one line of the answer.
type listedHost struct {
	host
	Up       int64  `json:"up_ms"` // since Started; -1: not known
	Stopping bool   `json:"stopping"`
	Lease    string `json:"lease"`       // "": its key is on none
	TTLLeft  int64  `json:"ttl_left_ms"` // -1: not known
}

// listHosts prints the hosts that are up. The read is linearizable: where etcd cannot vouch for an answer there is none.
func (c *call) listHosts(ctx context.Context, f *hostsFlags) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var view coord.HostView
	err = f.Reach(ctx, client, func(ctx context.Context) error {
		view, err = coord.ListHosts(ctx, client, "")
		return err
	})
	if err != nil {
		return 0, lacking(client, f.Settings, hostsNeeds, err)
	}
	var all []listedHost
	for _, h := range view.Hosts {
		if f.fits.Fits(h.Metadata) {
			one := listedHost{host: hostOf(h.Metadata, h.Incarnation), Up: -1, Stopping: h.Stopping, TTLLeft: -1}
			if one.Started != "" {
				one.Up = h.Age.Milliseconds()
			}
			if h.Lease != 0 {
				one.Lease = hold.FormatLease(int64(h.Lease))
			}
			all = append(all, one)
		}
	}
	askTTL(ctx, client, all)

	var out bytes.Buffer
	if f.output.JSON() {
		for _, one := range all {
			out.Write(cli.JSONLine(one))
		}
	} else {
		printHosts(&out, all)
	}
	return answer(len(all) > 0), cli.Print(c.env.Stdout, out.Bytes())
}

// askTTL asks what the leases have left, unless they are many.
func askTTL(ctx context.Context, client *clientv3.Client, all []listedHost) {
	if len(all) > live.LeftMost {
		return
	}
	leases := make([]int64, len(all)) // 0: none
	for i, one := range all {
		leases[i], _ = hold.ParseLease(one.Lease)
	}
	left := live.Left(ctx, client, leases)
	for i, lease := range leases {
		if d, known := left[lease]; known {
			all[i].TTLLeft = d.Milliseconds()
		}
	}
}

func printHosts(w io.Writer, all []listedHost) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no such host is up")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "UUID\tSTATE\tHOSTNAME\tHYPERVISOR\tVERSION\tUP\tTTL LEFT\tLABELS")
	for _, h := range all {
		state := "up"
		if h.Stopping {
			state = "stopping"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", dash(shown(h.HostUUID)), state, dash(shown(h.Hostname)),
			dash(shown(h.Hypervisor)), dash(shown(h.Version)), span(h.Up), span(h.TTLLeft), dash(h.labelText()))
	}
	_ = t.Flush()
}

// span is a time in milliseconds, for people.
func span(ms int64) string {
	if ms < 0 {
		return "?"
	}
	return (time.Duration(ms) * time.Millisecond).Truncate(time.Second).String()
}
