package command

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// question are the flags of a command that is asked instead of told to run something: one question at a
// time, and how to answer it.
type question struct {
	who    bool
	watch  bool
	assert bool
	minRev uint64 // with assert; 0: any
	pid    int    // with assert; 0: any
	output cli.Output
}

// declare declares those that an office has.
func (q *question) declare(flags *pflag.FlagSet) {
	flags.BoolVar(&q.who, "who", false, "print who leads and who waits; no CMD")
	flags.BoolVar(&q.watch, "watch", false, "print each change of leader, vacancies too, until interrupted; no CMD")
	flags.BoolVar(&q.assert, "assert", false, "0 if this host leads, else 1; no CMD")
	flags.Var(cli.Number(&q.minRev, math.MaxInt64), "min-rev", "with --assert: its token has to be at least this, such as $CONCH_REV")
	flags.Var(cli.Number(&q.pid, math.MaxInt32), "pid", "with --assert: it has to be the conch with this process id")
	q.output.AddFlags(flags, outputUsage)
}

// declareSlots declares those that a semaphore has.
func (q *question) declareSlots(flags *pflag.FlagSet) {
	flags.BoolVar(&q.who, "who", false, "print who holds which slot and who waits; no CMD")
	flags.BoolVar(&q.watch, "watch", false, "print each slot that is taken or given up, until interrupted; no CMD")
	q.output.AddFlags(flags, outputUsage)
}

const outputUsage = "with --who and --watch: how to print"

// asked is the flags that ask, as the user wrote them.
func (q *question) asked() (names []string) {
	for _, one := range []struct {
		on   bool
		name string
	}{{q.who, "--who"}, {q.watch, "--watch"}, {q.assert, "--assert"}} {
		if one.on {
			names = append(names, one.name)
		}
	}
	return names
}

// check accepts one question without a command, and without flags that are for running one.
func (q *question) check(cmd *cobra.Command, argv []string, act []string) error {
	asked := q.asked()
	if len(asked) > 1 {
		return cli.Usagef("%s: want one of them", strings.Join(asked, " and "))
	}
	if len(argv) > 0 {
		return cli.Usagef("%s runs no command, got %s", asked[0], cli.Quote(argv[0]))
	}
	for _, name := range act {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("%s cannot be combined with --%s", asked[0], name)
		}
	}
	return q.stray(cmd.Flags())
}

// stray refuses what belongs to a question that is not asked.
func (q *question) stray(flags *pflag.FlagSet) error {
	for _, name := range []string{"min-rev", "pid"} {
		if flags.Changed(name) && !q.assert {
			return cli.Usagef("--%s goes with --assert only", name)
		}
	}
	if (flags.Changed("output") || q.output.JSON()) && !q.who && !q.watch {
		return cli.Usagef("-o and --json go with --who and --watch only")
	}
	return nil
}

// ask answers the one question that was asked.
func (c *call) ask(ctx context.Context, conn *cli.Connection, q *question, n view.Name) (int, error) {
	switch {
	case q.watch:
		return c.watch(ctx, conn, &q.output, n)
	case q.assert:
		return c.assert(ctx, conn, q, n)
	}
	return c.tellWho(ctx, conn, &q.output, n)
}

// connect makes the client that a question goes to.
func (c *call) connect(ctx context.Context, f *cli.Connection) (*clientv3.Client, error) {
	if err := f.Discover(ctx, c.env); err != nil {
		return nil, err
	}
	client, err := f.Client()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hold.ErrUnreachable, err)
	}
	return client, nil
}
