package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

const fenceExample = `  conch elect reports -- conch fence --file /srv/reports/token -- ./make-reports
                                         run it, unless a later holder has been at it
  conch fence --file /srv/reports/token --token 1207 --wait 30s -- ./make-reports
  conch fence check --file /srv/reports/token  76 if the token is too low
  conch fence sql                              the same for a table of PostgreSQL`

const fenceLong = `Whoever holds an office can be paused, lose it, and wake up in the middle of its work. So what it works on
has to remember the highest token (CONCH_REV) that it has seen, and refuse lower ones: 76.

CMD runs only if the token is not below the highest that FILE holds, which is the token then, on the disk
before CMD starts. Nobody else's CMD runs under FILE meanwhile: it is locked, at FILE.lock, until CMD and
everything it started is gone. What CMD leaves behind when it ends is ended. No etcd is contacted.

One FILE for each key, beside what is written: of an office its name, of a semaphore name and slot.

Exit codes: CMD's own, 128+n if signal n ended it; 64 usage, or FILE is damaged; 69 the token could not be
stored, or no guard; 70 the guard was lost, or something of CMD cannot be ended; 75 FILE is locked;
76 the token is below the highest seen; 126, 127 CMD cannot be executed, or does not exist; 128+n
signal n came while waiting.`

// fence is "conch fence".
func (c *call) fence() *cobra.Command {
	f := &fenceFlags{}
	cmd := &cobra.Command{
		Use:     "fence --file FILE [flags] -- CMD [ARG...]",
		Short:   "Run a command unless its token is too low; check tokens.",
		Long:    fenceLong,
		Example: fenceExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			argv, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			c.code, err = c.runFenced(cmd.Context(), f, argv)
			return err
		},
	}
	f.declare(cmd.Flags())
	completeWords(cmd)
	cmd.AddCommand(c.fenceCheck(), c.fenceSQL())
	return cmd
}

// fenceFile are the flags that say which token is checked against which file.
type fenceFile struct {
	path      string
	token     uint64
	logFormat string
}

func (f *fenceFile) declare(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.path, "file", "", "where the highest token is kept")
	cli.AddToken(flags, &f.token)
}

// check judges the flags. CONCH_REV stands in for the token.
func (f *fenceFile) check(flags *pflag.FlagSet, env cli.Env) error {
	if err := cli.BindEnv(flags, env); err != nil {
		return err
	}
	switch {
	case f.path == "" && !flags.Changed("file"):
		return cli.Usagef("--file is missing: want the path of the file that keeps the token")
	case f.path == "" || strings.HasSuffix(f.path, "/"):
		return cli.Usagef("--file %s: want the path of a file", cli.Quote(f.path))
	case f.token == 0:
		return cli.Usagef("--token is missing, and CONCH_REV is not set: want %s", cli.Number(&f.token, 1<<64-1).Accepts())
	}
	return nil
}

// failed gives what a file guard has returned its exit code.
func (f *fenceFile) failed(err error) error {
	var fenced *fence.ErrFenced
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fenced):
		return fmt.Errorf("%w: token %d is below %d, the highest that %s has seen", hold.ErrFenced, fenced.Have, fenced.Seen, hold.Escape(f.path))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %s is locked by another conch fence", hold.ErrNotAcquired, hold.Escape(f.path))
	case errors.Is(err, fence.ErrDamaged), errors.Is(err, fence.ErrIrregular), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return cli.Usagef("--file %s: %w", cli.Quote(f.path), err)
	}
	return err
}
