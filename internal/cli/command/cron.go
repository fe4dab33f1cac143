package command

import (
	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
)

// cron is "conch cron".
func (c *call) cron() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cron COMMAND [flags]",
		Short: "Run commands at their times, each once in the whole cluster.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("no command given; conch cron --help lists them")
			}
			return cli.Usagef("unknown command %s%s", cli.Quote("cron "+args[0]), nearCommand(cmd, args[0]))
		},
	}
	cmd.AddCommand(c.cronRuns()...)
	return cmd
}
