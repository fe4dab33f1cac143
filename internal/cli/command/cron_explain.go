package command

import (
	"bytes"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
)

const cronExplainLong = `Prints what an expression means, in words, and then what may surprise whoever wrote it, a line each. No etcd is
contacted. docs/schedule.md has the language.

Exit codes: 0; 64 usage, or the expression cannot be read.`

// cronExplain is "conch cron explain".
func (c *call) cronExplain() *cobra.Command {
	f, logFormat := &expressionFlags{}, ""
	cmd := &cobra.Command{
		Use:     "explain EXPR [flags]",
		Short:   "Say in words what an expression means.",
		Long:    cronExplainLong,
		Example: "  conch cron explain '*/35 * * * *'\n  conch cron explain '30 2 * * *' --tz America/New_York",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.BindEnv(cmd.Flags(), c.env); err != nil {
				return err
			}
			switch {
			case len(args) == 0:
				return cli.Usagef("no expression given: conch cron explain EXPR")
			case len(args) > 1:
				return cli.Usagef("one expression is accepted, got %s too; it has to stand in quotes", cli.Quote(args[1]))
			}
			t, err := f.parse(args[0])
			if err != nil {
				return err
			}
			var out bytes.Buffer
			fmt.Fprintln(&out, t.plan.Explain())
			now := time.Now()
			if err := t.plan.Check(now); err != nil {
				fmt.Fprintf(&out, "note: %s\n", err)
			}
			for _, line := range t.plan.Lint(now) {
				fmt.Fprintf(&out, "note: %s\n", line)
			}
			return cli.Print(c.env.Stdout, out.Bytes())
		},
	}
	cmd.Flags().SortFlags = false
	f.declare(cmd.Flags())
	cli.AddLogFormat(cmd.Flags(), &logFormat)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	completeWords(cmd)
	completeZones(cmd)
	return cmd
}
