package command

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// aliases are the commands that the executable can be named for.
var aliases = map[string]bool{"elect": true}

// Main runs the command that env asks for and returns its exit code.
func Main(ctx context.Context, env cli.Env) int {
	c := &call{env: env, began: time.Now()}
	root := c.root()
	args := env.Args
	if name := filepath.Base(env.Name); aliases[name] {
		args = append([]string{name}, args...)
	}
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		return cli.Fail(env, err)
	}
	return c.code
}

// call is one run of the program.
type call struct {
	env   cli.Env
	began time.Time
	code  int // what the command found out, where that is no error
}

func (c *call) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "conch",
		Short:         "Run commands that only one host at a time may run.",
		Example:       "  conch elect reports -- ./make-reports\n  conch elect reports --who",
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	// A flag after a word that is no command of ours is not ours either.
	root.Flags().SetInterspersed(false)
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(c.env.Stdout)
	root.SetErr(c.env.Stderr)
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(help)
	root.AddCommand(c.elect(), c.doctor(), c.version())
	return root
}

// unknownCommand is what the root does by itself: it explains why it does nothing.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("no command given; conch --help lists them")
	}
	hint := "; conch --help lists the commands"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + near[0] + "?"
	}
	return cli.Usagef("unknown command %s%s", cli.Quote(args[0]), hint)
}

// answer is what a question found out: yes is 0.
func answer(yes bool) int {
	if yes {
		return hold.CodeOK
	}
	return hold.CodeNo
}
