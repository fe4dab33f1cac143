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

	"github.com/go-coord/coord"
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
		Long:      "Names of offices and semaphores come from etcd, if it answers at once.",
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
	// completePage is how many keys are read at once for that, and completeMost how often.
	completePage = 200
	completeMost = 10
)

// completeName gives names of a kind for the first argument; what follows it is a command.
func (c *call) completeName(conn *cli.Connection, kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return c.completeNames(cmd, conn, begun, kind)
	}
}

// completeNames gives what there is of some kinds and begins so: offices and semaphores that are held or have been, hosts
// that are up.
func (c *call) completeNames(cmd *cobra.Command, conn *cli.Connection, begun string, kinds ...string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if begun != "" && hold.ValidName(begun) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeFrom(cmd, conn, func(ctx context.Context, client *clientv3.Client) (names []string) {
		for _, kind := range kinds {
			for _, below := range namesBelow(kind) {
				names = append(names, namesIn(ctx, client, below, begun)...)
			}
		}
		return names
	})
}

// completeMax gives the maxima that the semaphore which was named goes by, or went.
func (c *call) completeMax(conn *cli.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 || hold.ValidName(args[0]) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.completeFrom(cmd, conn, func(ctx context.Context, client *clientv3.Client) (maxima []string) {
			_, last := hold.SemaRecords(args[0])
			for _, below := range []string{hold.SemaRange(args[0]), last + "/"} {
				maxima = append(maxima, namesIn(ctx, client, below, begun)...)
			}
			return maxima
		})
	}
}

// completeFrom gives what is found in etcd, in order. Where etcd is away, or refuses, there is nothing, and nothing is said.
func (c *call) completeFrom(cmd *cobra.Command, conn *cli.Connection, find func(context.Context, *clientv3.Client) []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if conn.Bind(cmd.Flags(), c.env) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	offered := make(chan []string, 1)
	go func() { // making a client, too, may take long
		client, err := c.connect(ctx, conn)
		if err != nil {
			offered <- nil
			return
		}
		defer client.Close()
		found := find(ctx, client)
		slices.Sort(found)
		offered <- slices.Compact(found)
	}()
	select {
	case found := <-offered:
		return found, cobra.ShellCompDirectiveNoFileComp
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// namesBelow are the prefixes that the names of a kind follow.
func namesBelow(kind string) []string {
	switch kind {
	case hold.KindElect, hold.KindSema:
		return []string{hold.AreaRange(hold.Area(kind)), hold.AreaRange(hold.AreaLast) + kind + "/"}
	case hold.KindHost:
		return []string{coord.HostsPrefix}
	}
	return nil
}

// namesIn reads the names that follow a prefix and begin so, of keys that are ours. Of one name there can be thousands of keys: where there is
// more than a page the rest of its last name is skipped. A user may be allowed to read one prefix and not another.
func namesIn(ctx context.Context, client *clientv3.Client, below, begun string) (names []string) {
	from, end := below+begun, clientv3.GetPrefixRangeEnd(below+begun)
	for range completeMost {
		got, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(completePage))
		if err != nil {
			return names
		}
		for _, kv := range got.Kvs {
			rest := string(kv.Key)[len(below):]
			name, _, more := strings.Cut(rest, "/")
			if from = below + rest + "\x00"; more {
				from = below + name + "0" // which comes after the slash
			}
			if _, err := hold.ParseKey(string(kv.Key)); err == nil || below == coord.HostsPrefix && !more && hold.ValidName(name) == nil {
				names = append(names, name)
			}
		}
		if !got.More {
			break
		}
	}
	return slices.Compact(names)
}
