package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// help prints what a command does, examples first.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "%s\n\n", cmd.Short)
	if cmd.Example != "" {
		fmt.Fprintf(w, "%s\n\n", cmd.Example)
	}
	fmt.Fprintf(w, "Usage: %s\n", usageLine(cmd))
	if cmd.Long != "" {
		fmt.Fprintf(w, "\n%s\n", cmd.Long)
	}
	helpCommands(w, cmd)
	if flags := cmd.Flags().FlagUsagesWrapped(100); flags != "" {
		fmt.Fprintf(w, "\nFlags:\n%s", flags)
	}
}

func usageLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " COMMAND [flags]"
	}
	path := cmd.CommandPath()
	return strings.TrimSuffix(path, cmd.Name()) + cmd.Use
}

func helpCommands(w io.Writer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	fmt.Fprint(w, "\nCommands:\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(w, "  %-10s %s\n", sub.Name(), sub.Short)
		}
	}
}
