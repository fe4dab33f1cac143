package command

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/manifest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// cronExportFlags are the flags of "conch cron export".
type cronExportFlags struct {
	cli.Connection
	output string
}

const cronExportLong = `Prints jobs as conch cron apply reads them: all, or those that are named. Left out is what commands write: when and by
whom a job was added, and from when its ticks count. A pause is printed, and counts where apply adds the job.

Exit codes: 0; 1 there is no such job, or one cannot be read; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronExport is "conch cron export".
func (c *call) cronExport() *cobra.Command {
	f := &cronExportFlags{}
	cmd := &cobra.Command{
		Use:     "export [NAME...] [flags]",
		Short:   "Print jobs as apply reads them.",
		Long:    cronExportLong,
		Example: "  conch cron export >jobs.yaml\n  conch cron export backup -o json",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			if err := jobArguments(args, 0, len(args), ""); err != nil {
				return err
			}
			return c.withJobs(cmd.Context(), &f.Connection, func(a *cronJobs) error { return c.exportJobs(cmd.Context(), a, f, args) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(cli.Choice(&f.output, "yaml", "json"), "output", "o", "a document a job, or a line a job")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, 1<<10)
	completeWords(cmd)
	return cmd
}

func (c *call) exportJobs(ctx context.Context, a *cronJobs, f *cronExportFlags, names []string) error {
	all, err := a.some(ctx, names)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for i, s := range all {
		j, err := parsed(s)
		if err != nil {
			return refuse(hold.ErrNo, "%s", err.Error())
		}
		j = manifest.Authored(j)
		switch {
		case f.output == "json":
			out.Write(cli.JSONLine(json.RawMessage(manifest.JSON(s.Name, j))))
			continue
		case i > 0:
			out.WriteString("---\n")
		}
		out.Write(manifest.YAML(s.Name, j))
	}
	return cli.Print(c.env.Stdout, out.Bytes())
}
