package command

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
)

const cronValidateLong = `Prints a line for each job that cannot be meant: the file, the line, the job, the field, what is accepted. No etcd is
contacted, and no clock is looked at: whether a tick is still to come is for conch cron next to say.

Exit codes: 0 all jobs can be meant; 1 one cannot, or there is none; 64 usage.`

// cronValidate is "conch cron validate".
func (c *call) cronValidate() *cobra.Command {
	files, logFormat := &jobFiles{}, ""
	cmd := &cobra.Command{
		Use:     "validate -f FILE|DIR|- [flags]",
		Short:   "Check files of jobs, without etcd.",
		Long:    cronValidateLong,
		Example: "  conch cron validate -f jobs/\n  conch cron export | conch cron validate -f -",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.BindEnv(cmd.Flags(), c.env); err != nil {
				return err
			}
			entries, faults, err := files.read(c.env)
			if err != nil {
				return err
			}
			var out bytes.Buffer
			for _, fault := range faults {
				fmt.Fprintln(&out, fault)
			}
			if len(faults) == 0 && len(entries) == 0 {
				fmt.Fprintln(&out, "no job was read")
			}
			c.code = answer(len(faults) == 0 && len(entries) > 0)
			return cli.Print(c.env.Stdout, out.Bytes())
		},
	}
	cmd.Flags().SortFlags = false
	files.declare(cmd.Flags())
	cli.AddLogFormat(cmd.Flags(), &logFormat)
	completeWords(cmd)
	return cmd
}
