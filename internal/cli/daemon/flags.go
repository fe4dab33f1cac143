package daemon

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron"
	"github.com/go-coord/coord/internal/hold"
)

// mostRunning is the largest --max-running.
const mostRunning = 100_000

// flags are those of conchd.
type flags struct {
	cli.Connection
	host       string
	labels     map[string]string
	users      []string
	maxRunning int
	drain      time.Duration
	maxSkew    time.Duration
	readOnly   bool
	ttl        time.Duration
	killMargin time.Duration
	guard      string
	version    bool
}

func (f *flags) declare(set *pflag.FlagSet) {
	set.SortFlags = false
	f.maxRunning, f.drain, f.maxSkew, f.killMargin = cron.DefaultMaxRunning, cron.DefaultDrainTimeout, cron.DefaultMaxSkew, coord.DefaultMargin
	set.StringVar(&f.host, "host", "", "the name of this node (default the host's own)")
	set.Var(cli.Labels(&f.labels), "label", "a label that jobs select nodes by; may be repeated")
	set.StringSliceVar(&f.users, "allow-user", nil, `as whom jobs may run beside the daemon's own user; "*": anybody; may be repeated`)
	set.Var(cli.Number(&f.maxRunning, mostRunning), "max-running", "how many runs there may be here at a time")
	set.Var(cli.Duration(&f.drain, "a duration from 0s, such as 30s", notNegative), "drain-timeout", "how long what runs may go on when the daemon is told to stop")
	set.Var(cli.Duration(&f.maxSkew, "a duration of at least 1s, such as 5s", atLeastASecond), "max-skew",
		"how far this clock may be off the median of three nodes or more; beyond it nothing is claimed")
	set.BoolVar(&f.readOnly, "read-only", false, "claim, run and record nothing")
	cli.AddTTL(set, &f.ttl)
	set.Var(cli.Duration(&f.killMargin, "a duration above 0, such as 500ms", cli.Positive), "kill-margin", "what killing and reaping may take")
	set.Var(cli.Choice(&f.guard, "auto", "off"), "guard", "start the second process that outlives this one, or not")
	f.AddFlags(set)
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	for name, variable := range map[string]string{
		"host": "CONCH_HOST", "label": "CONCH_LABEL", "allow-user": "CONCH_ALLOW_USER", "max-running": "CONCH_MAX_RUNNING",
		"drain-timeout": "CONCH_DRAIN_TIMEOUT", "max-skew": "CONCH_MAX_SKEW", "read-only": "CONCH_READ_ONLY",
		"kill-margin": "CONCH_KILL_MARGIN", "guard": "CONCH_GUARD",
	} {
		cli.FromEnv(set, name, variable)
	}
}

func notNegative(d time.Duration) bool    { return d >= 0 }
func atLeastASecond(d time.Duration) bool { return d >= time.Second }

// check reads flags, variables and arguments. It contacts nobody.
func (f *flags) check(cmd *cobra.Command, env cli.Env, args []string) error {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return err
	}
	if len(args) > 0 {
		return cli.Usagef("conchd takes no arguments, got %s", cli.Quote(args[0]))
	}
	if f.host == "" {
		name, err := os.Hostname()
		if err != nil {
			return cli.Usagef("--host is missing, and the host has no name: %v", err)
		}
		f.host = name
	}
	if err := hold.ValidName(f.host); err != nil {
		return cli.Usagef("--host: %s", strings.TrimPrefix(err.Error(), hold.ErrUsage.Error()+": "))
	}
	m := coord.HostMetadata{HostUUID: f.host, Labels: f.labels}
	if err := m.Validate(); err != nil {
		return cli.Usagef("--label: %s", strings.TrimPrefix(err.Error(), coord.ErrInvalidOption.Error()+": "))
	}
	if cmd.Flags().Changed("allow-user") && len(f.users) == 0 {
		return cli.Usagef(`--allow-user "": want the name of a user, or *`)
	}
	for _, u := range f.users {
		if u == "" || strings.ContainsAny(u, " \t\n:/") {
			return cli.Usagef("--allow-user %s: want the name of a user, or *", cli.Quote(u))
		}
	}
	if f.maxRunning < 1 {
		return cli.Usagef("--max-running %d: want a number from 1 to %d", f.maxRunning, mostRunning)
	}
	if _, err := coord.NewBounds(f.ttl, f.killMargin, coord.DefaultGrace); err != nil {
		return cli.Usagef("--ttl %v, --kill-margin %v: %s", f.ttl, f.killMargin, strings.TrimPrefix(err.Error(), coord.ErrInvalidOption.Error()+": "))
	}
	return nil
}

const long = `Runs the jobs of "conch cron" at their ticks: each tick once in the whole fleet, on one of the nodes that may.
Start one on each host. Jobs run as this daemon's user unless they name one of --allow-user.

Whoever may write below /conch/v1/cron/ can run commands here.

SIGTERM, SIGINT and SIGHUP: nothing more is claimed, what runs may finish for --drain-timeout, its results are
written. A second signal ends what runs.

Exit codes: 0 told to stop. 64 usage; 69 etcd unreachable at the start; 75 a daemon with this name lives;
77 permission denied.`
