package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
)

// version is "conch version": what this program was built from.
func (c *call) version() *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print what this program was built from.",
		Example: "  conch version\n  conch version -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout(), output.JSON())
		},
	}
	cmd.Flags().SortFlags = false
	output.AddFlags(cmd.Flags(), "how to print")
	completeWords(cmd)
	return cmd
}

// noArguments is for commands that take flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Usagef("%s takes no argument, got %s", cmd.Name(), cli.Quote(args[0]))
	}
	return nil
}

func printVersion(w io.Writer, asJSON bool) error {
	b := cli.ThisBuild()
	text := fmt.Appendf(nil, "conch %s\ncommit %s\ndate %s\ngo %s %s/%s\netcd client %s\n",
		b.Version, b.Commit, b.Date, b.Go, b.OS, b.Arch, b.EtcdClient)
	if asJSON {
		text = cli.JSONLine(b)
	}
	return cli.Print(w, text)
}
