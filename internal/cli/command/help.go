package command

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
)

// help prints what a command does, examples first; of a topic, its text. It is plain text: nothing that conch
// prints has colours.
func (c *call) help(cmd *cobra.Command, _ []string) {
	var text bytes.Buffer
	writeHelp(&text, cmd)
	c.unprinted = cli.Print(c.env.Stdout, text.Bytes())
}

func writeHelp(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(w, "%s\n\n", cmd.Short)
	if cmd.IsAdditionalHelpTopicCommand() {
		fmt.Fprintln(w, cmd.Long)
		return
	}
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
	if !cmd.HasParent() {
		return cmd.CommandPath() + " COMMAND [flags]"
	}
	path := cmd.CommandPath()
	return strings.TrimSuffix(path, cmd.Name()) + cmd.Use
}

func helpCommands(w io.Writer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	var topics []*cobra.Command
	fmt.Fprint(w, "\nCommands:\n")
	for _, sub := range cmd.Commands() {
		switch {
		case sub.IsAvailableCommand():
			fmt.Fprintf(w, "  %-12s %s\n", sub.Name(), sub.Short)
		case sub.IsAdditionalHelpTopicCommand():
			topics = append(topics, sub)
		}
	}
	if len(topics) > 0 {
		fmt.Fprintf(w, "\nTopics, shown by %s help TOPIC:\n", cmd.Name())
	}
	for _, topic := range topics {
		fmt.Fprintf(w, "  %-12s %s\n", topic.Name(), topic.Short)
	}
}

// helpCommand is "conch help": of a command, a topic, or all.
func (c *call) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND|TOPIC]",
		Short:   "Explain a command, or a topic.",
		Example: "  conch help elect\n  conch help exit-codes",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
			for _, sub := range cmd.Root().Commands() {
				if len(args) == 0 && explained(sub) && strings.HasPrefix(sub.Name(), begun) {
					all = append(all, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about := cmd.Root()
			for _, word := range args {
				at := child(about, word)
				if at == nil {
					return cli.Usagef("no help about %s%s", cli.Quote(word), nearCommand(about, word))
				}
				about = at
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// explained reports whether help tells of a command: not of what shells ask by themselves.
func explained(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() || cmd.IsAdditionalHelpTopicCommand()
}

func child(of *cobra.Command, name string) *cobra.Command {
	for _, sub := range of.Commands() {
		if sub.Name() == name && explained(sub) {
			return sub
		}
	}
	return nil
}

// nearCommand is a hint at the command or topic of nearly that name, or at the list.
func nearCommand(of *cobra.Command, name string) string {
	var names []string
	for _, sub := range of.Commands() {
		if explained(sub) {
			names = append(names, sub.Name())
		}
	}
	if best := cli.Near(name, names); best != "" {
		return "; did you mean " + best + "?"
	}
	return "; " + of.Root().Name() + " --help lists the commands"
}
