package command

import (
	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
)

const cronExample = `  conch cron add backup --schedule '30 2 * * *' -- backup --all   once a day, on one host
  conch cron apply -f jobs/                                       what the files say
  conch cron ls --last                                            what there is, when it is due, how it ended
  conch cron next backup                                          its next ticks
  conch cron explain '*/35 * * * *'                               what an expression means`

const cronLong = `Jobs stand in etcd, one key each. The daemon, conchd, runs on every host: each computes the same ticks, and the first
to claim one starts it. At most one start per job and tick, unless the job asks for more; perhaps none: then a
record says why. docs/cron.md has the whole of it.

Exit codes: 0; 1 there is no such job, or what was asked for was refused; 64 usage; 69 etcd unreachable; 77
permission denied.`

// cron is "conch cron".
func (c *call) cron() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cron COMMAND [flags]",
		Short:   "Run jobs by a schedule, each tick on one host.",
		Long:    cronLong,
		Example: cronExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return cli.Usagef("unknown command %s%s", cli.Quote("cron "+args[0]), nearCommand(cmd, args[0]))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(append(c.cronJobs(), c.cronRuns()...)...)
	return cmd
}

// cronJobs are the commands about jobs.
func (c *call) cronJobs() []*cobra.Command {
	return []*cobra.Command{
		c.cronAdd(), c.cronApply(), c.cronValidate(), c.cronLs(), c.cronShow(), c.cronNext(), c.cronExplain(), c.cronRm(), c.cronEdit(),
		c.cronImport(), c.cronExport(),
	}
}
