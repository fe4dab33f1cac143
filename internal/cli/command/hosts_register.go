package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// registerFlags are the flags of "conch hosts register".
type registerFlags struct {
	cli.Connection
	ttl      time.Duration
	uuid     string
	hostname string
	version  string
	labels   map[string]string
	childFlags
}

const registerExample = `  conch hosts register                        register this host until it is told to stop
  conch hosts register --label rack=r1        with a label to select it by
  conch hosts register -- ./agent             run the agent only while the host is proven to be registered`

const registerLong = `Keeps a key for this host in etcd for as long as this process lives and etcd can be reached, and puts it
again when it is lost. A process that was killed leaves its key for the TTL; the next one waits for that.

With CMD, CMD and everything it started is ended before the key can expire, and nothing is put again:
the command ends. CMD sees CONCH_NAME, the UUID, CONCH_REV and CONCH_LEASE.

Exit codes: without CMD 0 when told to stop, 128+n when signal n came before it was registered. With CMD
its own, 128+n if signal n ended it, 70 if the host could not be proven to be registered any more. 64 usage;
69 etcd unreachable, or no guard; 75 another live process has this UUID; 77 permission denied; 126, 127 CMD.`

// register is "conch hosts register".
func (c *call) register() *cobra.Command {
	f := &registerFlags{}
	cmd := &cobra.Command{
		Use:     "register [flags] [-- CMD [ARG...]]",
		Short:   "Register this host, and run a command while it is registered.",
		Long:    registerLong,
		Example: registerExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, argv, err := f.check(cmd, c, args)
			if err != nil {
				return err
			}
			if argv != nil {
				c.code, err = c.alongside(cmd.Context(), f, m, argv)
				return err
			}
			c.code, err = c.stay(cmd.Context(), f, m)
			return err
		},
	}
	f.declare(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	completeWords(cmd)
	return cmd
}

func (f *registerFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddHostUUID(flags, &f.uuid)
	flags.StringVar(&f.hostname, "hostname", "", "the host's name, for people (default its own)")
	flags.Var(cli.Labels(&f.labels), "label", "a label to select hosts by; may be repeated")
	flags.StringVar(&f.version, "version", "", "the version of what runs there, for people")
	cli.AddTTL(flags, &f.ttl)
	f.childFlags.declare(flags)
	f.AddFlags(flags)
}

// check reads flags, variables and arguments, and accepts all of them or none. It contacts nobody.
func (f *registerFlags) check(cmd *cobra.Command, c *call, args []string) (m coord.HostMetadata, argv []string, err error) {
	flags := cmd.Flags()
	if err := f.Bind(flags, c.env); err != nil {
		return m, nil, err
	}
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) > 0:
		return m, nil, cli.Usagef("-- is missing before the command %s", cli.Quote(args[0]))
	case dash > 0:
		return m, nil, cli.Usagef("nothing is accepted before --, got %s", cli.Quote(args[0]))
	case dash == 0 && len(args) == 0:
		return m, nil, cli.Usagef("no command given after --")
	case dash == 0:
		argv = args
	}
	if argv == nil {
		for _, name := range childFlagNames {
			if flags.Changed(name) {
				return m, nil, cli.Usagef("--%s: goes with a command only: -- CMD [ARG...] is missing", name)
			}
		}
	}
	if f.uuid == "" && flags.Changed("uuid") {
		return m, nil, cli.Usagef(`--uuid "": want a UUID`)
	}
	if f.uuid == "" {
		if f.uuid, err = machineUUID(c.machineFile); err != nil {
			return m, nil, err
		}
	}
	if f.hostname == "" {
		f.hostname = hostname()
	}
	m = coord.HostMetadata{
		HostUUID: f.uuid, Hostname: f.hostname, Version: f.version, Labels: f.labels, StartedAt: c.began.UnixNano(),
	}
	if err := m.Validate(); err != nil {
		return m, nil, cli.Usagef("%s", strings.TrimPrefix(err.Error(), coord.ErrInvalidOption.Error()+": "))
	}
	return m, argv, f.childFlags.check(flags, f.ttl)
}

// options are the options of a registration.
func (f *registerFlags) options(log *slog.Logger) coord.LivenessOptions {
	return coord.LivenessOptions{LeaseTTLSec: int64(f.ttl / time.Second), Grace: f.killAfter, Margin: f.killMargin, Logger: log}
}

// registration registers once etcd is known to be there, for as long as it takes an earlier process's key to go.
// An error has an exit code.
func (f *registerFlags) registration(ctx context.Context, client *clientv3.Client, m coord.HostMetadata, o coord.LivenessOptions) (*coord.HostLiveness, error) {
	key := coord.HostsPrefix + m.HostUUID
	needs := []cli.Need{{Key: key, Writes: false}, {Key: key, Writes: true}}
	err := f.Reach(ctx, client, func(ctx context.Context) error { return cli.Permitted(ctx, client, needs...) })
	if err != nil {
		return nil, lacking(client, f.Settings, needs, err)
	}
	h, err := coord.RegisterHostLiveness(ctx, client, m, o)
	switch {
	case err == nil && ctx.Err() != nil: // who asked for it has left
		_ = h.Stop(context.WithoutCancel(ctx))
		return nil, context.Cause(ctx)
	case err == nil:
		return h, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, coord.ErrDuplicateHost):
		return nil, fmt.Errorf("%w: %w", hold.ErrNotAcquired, err)
	}
	return nil, lacking(client, f.Settings, needs, cli.Classify(err))
}
