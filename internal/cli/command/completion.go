package command

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// shells are those that a completion can be printed for.
var shells = []string{"bash", "zsh", "fish"}

const completionExample = `  source <(conch completion bash)                          in this bash
  conch completion bash >/etc/bash_completion.d/conch      in every bash
  conch completion zsh >"${fpath[1]}/_conch"
  conch completion fish >~/.config/fish/completions/conch.fish`

// bashAlone stands in for the package bash-completion where that is not loaded.
const bashAlone = `declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    cur=${words[cword]} prev=${words[cword-1]}
}

`

// completion is "conch completion": the script that lets a shell ask for completions.
func (c *call) completion() *cobra.Command {
	return &cobra.Command{
		Use:       "completion " + strings.Join(shells, "|"),
		Short:     "Print what makes a shell complete commands, flags and names.",
		Long:      "Names of offices come from etcd, if it answers at once.",
		Example:   completionExample,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			want := strings.Join(shells, ", ")
			switch {
			case len(args) == 0:
				return cli.Usagef("no shell given: want one of %s", want)
			case len(args) > 1:
				return cli.Usagef("one shell is accepted, got %s too", cli.Quote(args[1]))
			case !slices.Contains(shells, args[0]):
				return cli.Usagef("shell %s: want one of %s", cli.Quote(args[0]), want)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			var script bytes.Buffer // which takes anything: what is written to it cannot fail
			switch args[0] {
			case "bash":
				script.WriteString(bashAlone)
				_ = root.GenBashCompletionV2(&script, true)
			case "zsh":
				_ = root.GenZshCompletion(&script)
			case "fish":
				_ = root.GenFishCompletion(&script, true)
			}
			return cli.Print(c.env.Stdout, script.Bytes())
		},
	}
}

// completeWords lets a shell complete the values of flags that accept a few words.
func completeWords(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if words := cli.Words(f); words != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

const (
	// completeWithin is how long somebody who pressed a key waits.
	completeWithin = 300 * time.Millisecond
	// completeMost bounds how many keys are read for that.
	completeMost = 1000
)

// completeOffice gives the offices that are held or have been, for the first argument; what follows it is a
// command. Where etcd is away, or refuses, there are none, and nothing is said.
func (c *call) completeOffice(f *electFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if f.Bind(cmd.Flags(), c.env) != nil || begun != "" && hold.ValidName(begun) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		names := make(chan []string, 1)
		go func() { names <- c.offices(ctx, f, begun) }() // making a client, too, may take long
		select {
		case found := <-names:
			return found, cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// offices are the names that begin so, as far as they can be had; nil where not.
func (c *call) offices(ctx context.Context, f *electFlags, begun string) []string {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return nil
	}
	defer client.Close()
	var names []string
	_, last := hold.OfficeKeys("")
	for _, below := range []string{hold.AreaRange(hold.AreaElect), last.String()} {
		got, err := client.Get(ctx, below+begun, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(completeMost))
		if err != nil {
			continue // a user may be allowed to read the one and not the other
		}
		for _, kv := range got.Kvs {
			if key, err := hold.ParseKey(string(kv.Key)); err == nil {
				names = append(names, key.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
