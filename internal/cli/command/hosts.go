package command

import (
	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
)

// hosts is "conch hosts".
func (c *call) hosts() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hosts",
		Short: "Which hosts are there.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Usagef("no command given; %s --help lists them", cmd.CommandPath())
		},
	}
	cmd.AddCommand(c.register())
	return cmd
}
