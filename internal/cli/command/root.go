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
var aliases = map[string]bool{"elect": true, "sema": true, "cron": true}

// Main runs the command that env asks for and returns its exit code.
func Main(ctx context.Context, env cli.Env) int {
	c := &call{env: env, began: time.Now(), machineFile: machineFile}
	root := c.root()
	args := env.Args
	if name := filepath.Base(env.Name); aliases[name] {
		args = append([]string{name}, args...)
	}
	if len(args) > 0 && args[0] == "--version" {
		args = append([]string{"version"}, args[1:]...)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = c.unprinted
	}
	if err != nil {
		return cli.Fail(env, logFormat(cmd, env), err)
	}
	return c.code
}

// logFormat is how the log is to be written, as far as that is known where a command line makes no sense.
func logFormat(cmd *cobra.Command, env cli.Env) string {
	if f := cmd.Flags().Lookup("log-format"); f != nil && f.Changed {
		return f.Value.String()
	}
	return env.LogFormat()
}

// call is one run of the program.
type call struct {
	env   cli.Env
	began time.Time
	code  int // what the command found out, where that is no error

	unprinted   error  // of help, which has no error to return
	machineFile string // where the machine's id is
}

const rootExample = `  conch elect reports -- ./make-reports  run it while this host holds the office "reports"
  conch elect reports --who              who leads, and who waits
  conch sema uploads --max 3 -- ./upload run it while this host holds one of three slots
  conch evict elect reports              ask who leads to leave
  conch cron ls --last                   jobs, when they are due, and how they ended
  conch status                           everything that is held, and which hosts are up`

func (c *call) root() *cobra.Command {
	root := &cobra.Command{
		Use:           c.program(),
		Short:         "Run commands that only one host at a time may run.",
		Example:       rootExample,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	// A flag after a word that is no command of ours is not ours either.
	root.Flags().SetInterspersed(false)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(c.env.Stdout)
	root.SetErr(c.env.Stderr)
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(c.help)
	root.Flags().Bool("version", false, "the same as conch version")
	elect, sema, hosts, fence := c.elect(), c.sema(), c.hosts(), c.fence()
	root.AddCommand(elect, sema, c.status(), c.evict(), hosts, fence, c.cron(), c.doctor(), c.completion(), c.version())
	root.AddCommand(c.topics(append(hosts.Commands(), elect, sema, fence)...)...)
	root.SetHelpCommand(c.helpCommand())
	return root
}

// program is what the user calls this: conch, or conch-dev, which is conch and more.
func (c *call) program() string {
	if name := filepath.Base(c.env.Name); name == "conch-dev" {
		return name
	}
	return "conch"
}

// unknownCommand is what the root does by itself: it explains why it does nothing.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if on, _ := cmd.Flags().GetBool("version"); on {
		return printVersion(cmd.OutOrStdout(), false)
	}
	if len(args) == 0 {
		return cli.Usagef("no command given; %s --help lists them", cmd.Name())
	}
	return cli.Usagef("unknown command %s%s", cli.Quote(args[0]), nearCommand(cmd, args[0]))
}

// answer is what a question found out: yes is 0.
func answer(yes bool) int {
	if yes {
		return hold.CodeOK
	}
	return hold.CodeNo
}
