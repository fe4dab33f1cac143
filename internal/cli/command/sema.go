package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// semaFlags are the flags of "conch sema".
type semaFlags struct {
	runFlags
	max         int
	spread      bool
	ignoreOther bool
	question
}

// maxSlots is the highest --max.
const maxSlots = 1000

const semaExample = `  conch sema uploads --max 3 -- ./upload             run while one of three slots is held
  conch sema uploads --max 3 --nonblock -- ./upload  75 if none is free
  conch sema uploads --max 3 --spread -- ./upload    at most one slot a host
  conch sema uploads --who                           who holds which slot, and who waits
  conch sema uploads --watch                         each slot that is taken or given up`

const semaLong = `CMD runs only while this process holds one of N slots of NAME, and sees CONCH_NAME, CONCH_SLOT (0 to N-1,
nobody else's meanwhile), CONCH_REV (the fencing token: it rises with each hold of that slot) and CONCH_LEASE.
If the hold is lost, CMD and everything it started is ended before anybody else's starts in that slot.

All have to use the same N. While somebody holds or waits with another one, nobody enters: 75.

Exit codes: CMD's own, 128+n if signal n ended it; 64 usage; 69 etcd unreachable, or no guard; 70 hold lost
or evicted; 75 not acquired, or another N is in use; 77 permission denied; 126, 127 CMD cannot be executed, or
does not exist; 128+n signal n came while waiting. --who: 0 somebody holds or waits, 1 nobody.

conch help exit-codes says more, conch help environment which variables stand in for flags.`

// sema is "conch sema".
func (c *call) sema() *cobra.Command {
	f := &semaFlags{}
	cmd := &cobra.Command{
		Use:     "sema NAME --max N [flags] -- CMD [ARG...]",
		Short:   "Run a command while holding one of N slots.",
		Long:    semaLong,
		Example: semaExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			if len(f.asked()) > 0 {
				c.code, err = c.ask(cmd.Context(), &f.Connection, &f.question, view.Name{Kind: hold.KindSema, Name: name})
				return err
			}
			c.code, err = f.run(cmd.Context(), c, name, argv)
			return err
		},
	}
	f.declare(cmd)
	cmd.ValidArgsFunction = c.completeName(&f.Connection, hold.KindSema)
	_ = cmd.RegisterFlagCompletionFunc("max", c.completeMax(&f.Connection))
	completeWords(cmd)
	return cmd
}

func (f *semaFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(cli.Number(&f.max, maxSlots), "max", "how many may hold at the same time; all have to say the same")
	flags.BoolVar(&f.spread, "spread", false, "at most one slot a host, of those who say so")
	f.runFlags.declare(cmd, "a slot", "none is free")
	flags.BoolVar(&f.ignoreOther, "ignore-other-max", false, "enter although others hold or wait with another --max")
	f.question.declareSlots(flags)
	f.AddFlags(flags)
}

// check reads flags, variables and arguments, and accepts all of them or none. It contacts nobody.
func (f *semaFlags) check(cmd *cobra.Command, env cli.Env, args []string) (name string, argv []string, err error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return "", nil, err
	}
	f.waits = cmd.Flags().Changed("wait")
	if name, argv, err = named(args, cmd.ArgsLenAtDash(), "semaphore", "sema NAME --max N [flags] -- CMD [ARG...]"); err != nil {
		return "", nil, err
	}
	if len(f.asked()) > 0 {
		return name, nil, f.question.check(cmd, argv, append([]string{"max", "spread", "ignore-other-max"}, runFlagNames...))
	}
	return name, argv, f.checkRun(cmd, argv)
}

func (f *semaFlags) checkRun(cmd *cobra.Command, argv []string) error {
	if err := f.stray(cmd.Flags()); err != nil {
		return err
	}
	if f.max == 0 {
		return cli.Usagef("--max is missing: want %s", cli.Number(&f.max, maxSlots).Accepts())
	}
	if host := hostname(); f.spread && hold.ValidName(host) != nil {
		return cli.Usagef("--spread: wants a host name of letters, digits, '.', '_' and '-', this host is called %s", cli.Quote(host))
	}
	return f.runFlags.check(cmd, argv)
}

// run runs argv while a slot is held.
func (f *semaFlags) run(ctx context.Context, c *call, name string, argv []string) (int, error) {
	m := semaphore{name: name, max: f.max, ignoreOther: f.ignoreOther}
	if f.settle != "off" {
		m.settle.Open, m.settle.Last = hold.SemaRecords(name)
	}
	if f.spread {
		m.spreadBy = hostname()
	}
	return c.run(ctx, &f.runFlags, task{
		kind: hold.KindSema, name: name, doing: fmt.Sprintf("holding a slot of %s", name),
		contest: func(p *progress) contest {
			m := m
			m.progress = p
			return &m
		},
	}, argv)
}
