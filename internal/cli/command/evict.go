package command

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// evictFlags are the flags of "conch evict".
type evictFlags struct {
	cli.Connection
	holder   holderFlag
	slot     int
	bySlot   bool // --slot was given
	cooldown time.Duration
	force    bool
	rev      uint64
	wait     time.Duration
	waits    bool // --wait was given
	output   cli.Output
}

const evictExample = `  conch evict elect reports                          ask who leads to leave; say who comes next
  conch evict elect reports --cooldown 10m           and to stay away for 10 minutes
  conch evict sema uploads --slot 1                  ask the holder of that slot
  conch evict sema uploads --holder node2:4242       ask that holder
  conch evict elect reports --force --rev 1207       delete the key of who does not react`

const evictLong = `Asks a holder of the office or semaphore NAME to leave, and waits until its command has ended and the next one
holds, who is named, or nobody does. The holder ends its command as at a signal, and exits 70; under --restart it
comes back. KIND is elect or sema. Without --holder and --slot there has to be exactly one holder.

--force asks nobody: it deletes the key of the hold with token N, as --who prints it. The next holder waits
until the old command has said that it is over, for the TTL at most.

Exit codes: 0 it has left; 1 nobody holds, or not whom you meant; 64 usage; 69 etcd unreachable; 75 --wait ran out,
77 permission denied; 128+n signal n came while waiting. A request stays where nobody waits for it any more.`

// evict is "conch evict".
func (c *call) evict() *cobra.Command {
	f := &evictFlags{}
	cmd := &cobra.Command{
		Use:     "evict KIND NAME [flags]",
		Short:   "Ask a holder to leave, and wait until the next one holds.",
		Long:    evictLong,
		Example: evictExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			c.code, err = c.runEviction(cmd.Context(), f, name)
			return err
		},
	}
	f.declare(cmd.Flags())
	cmd.ValidArgsFunction = c.completeKindAndName(&f.Connection)
	completeWords(cmd)
	return cmd
}

// completeKindAndName gives kinds for the first argument, and names of that kind for the second.
func (c *call) completeKindAndName(conn *cli.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
		kinds := []string{hold.KindElect, hold.KindSema}
		if len(args) == 1 && slices.Contains(kinds, args[0]) {
			return c.completeNames(cmd, conn, begun, args[0])
		}
		for _, kind := range kinds {
			if len(args) == 0 && strings.HasPrefix(kind, begun) {
				all = append(all, kind)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

func (f *evictFlags) declare(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.Var(&f.holder, "holder", "ask the holder with this host and process id")
	flags.Var(cli.Index(&f.slot, maxSlots-1), "slot", "of a semaphore: ask the holder of this slot")
	flags.Var(cli.Duration(&f.cooldown, "a duration from 1ms to 24h, such as 10m", cooldown), "cooldown",
		"how long it is to stay away, if it runs with --restart")
	flags.BoolVar(&f.force, "force", false, "delete the key instead of asking; with --rev")
	flags.Var(cli.Number(&f.rev, math.MaxInt64), "rev", "with --force: the token of the hold, as --who prints it")
	flags.Var(cli.Duration(&f.wait, "a duration, such as 30s; 0 does not wait", cli.NotNegative), "wait",
		"how long to wait for the end of the hold and the next holder (default for as long as it takes)")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
}

func cooldown(d time.Duration) bool { return d >= time.Millisecond && d <= hold.CooldownMost }

// check reads flags, variables and arguments, and accepts all of them or none. It contacts nobody.
func (f *evictFlags) check(cmd *cobra.Command, env cli.Env, args []string) (view.Name, error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return view.Name{}, err
	}
	f.waits, f.bySlot = cmd.Flags().Changed("wait"), cmd.Flags().Changed("slot")
	name, err := kindAndName(args)
	if err != nil {
		return view.Name{}, err
	}
	return name, f.combine(name.Kind)
}

// kindAndName are the arguments of a command that is about something held.
func kindAndName(args []string) (view.Name, error) {
	const usage = "conch evict KIND NAME"
	switch {
	case len(args) == 0:
		return view.Name{}, cli.Usagef("no kind given, want elect or sema: %s", usage)
	case args[0] != hold.KindElect && args[0] != hold.KindSema:
		return view.Name{}, cli.Usagef("kind %s: want elect or sema: %s", cli.Quote(args[0]), usage)
	case len(args) == 1:
		return view.Name{}, cli.Usagef("no name given: %s", usage)
	case len(args) > 2:
		return view.Name{}, cli.Usagef("one name is accepted, got %s too", cli.Quote(args[2]))
	}
	return view.Name{Kind: args[0], Name: args[1]}, hold.ValidName(args[1])
}

// combine judges which flags go together.
func (f *evictFlags) combine(kind string) error {
	switch {
	case f.bySlot && kind != hold.KindSema:
		return cli.Usagef("--slot %d: goes with sema only, an office has no slots", f.slot)
	case f.bySlot && f.holder.pid != 0:
		return cli.Usagef("--slot %d: cannot be combined with --holder, want one of them", f.slot)
	case f.force && f.rev == 0:
		return cli.Usagef("--force: want --rev too, the token of the hold as --who prints it")
	case f.rev != 0 && !f.force:
		return cli.Usagef("--rev %d: goes with --force only", f.rev)
	case f.force && (f.bySlot || f.holder.pid != 0):
		return cli.Usagef("--force: goes by --rev alone, without --slot and --holder")
	case f.force && f.cooldown != 0:
		return cli.Usagef("--cooldown %v: cannot be combined with --force, which asks nobody", f.cooldown)
	}
	return nil
}

// holderFlag is the flag that names a holder.
type holderFlag struct {
	host string
	pid  int // 0: not given
}

const aHolder = "HOST:PID, as --who prints them, such as node2:4242"

var errHolder = errors.New("want " + aHolder)

// Set takes what is behind the last colon for the process id: a host is whatever its holder says.
func (h *holderFlag) Set(s string) error {
	at := strings.LastIndexByte(s, ':')
	if at <= 0 {
		return errHolder
	}
	pid, err := strconv.ParseInt(s[at+1:], 10, 32)
	if err != nil || pid <= 0 || s[at+1] == '+' {
		return errHolder
	}
	h.host, h.pid = s[:at], int(pid)
	return nil
}

func (h *holderFlag) String() string {
	if h.pid == 0 {
		return ""
	}
	return h.host + ":" + strconv.Itoa(h.pid)
}

func (h *holderFlag) Type() string    { return "HOST:PID" }
func (h *holderFlag) Accepts() string { return aHolder }

// is reports whether a holder is the one that is named. Who is none of ours is nobody's host.
func (h *holderFlag) is(who hold.Holder) bool {
	return view.Known(who) && who.Host == h.host && who.PID == h.pid
}

// runEviction does it, until a signal comes.
func (c *call) runEviction(ctx context.Context, f *evictFlags, name view.Name) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	e := &eviction{
		evictFlags: f, env: c.env, client: client, name: name,
		log: cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat),
	}
	return c.stream(ctx, e.run)
}
