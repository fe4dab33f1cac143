package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/version"

	"github.com/go-coord/coord/internal/cli"
)

// version is "conch version": what this program was built from.
func (c *call) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this program was built from.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("version takes no argument, got %s", cli.Quote(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "conch %s\ncommit %s\nbuilt %s\ngo %s %s/%s\netcd client %s\n",
				cli.Version, cli.Commit, cli.Date, runtime.Version(), runtime.GOOS, runtime.GOARCH, version.Version)
			return err
		},
	}
}
