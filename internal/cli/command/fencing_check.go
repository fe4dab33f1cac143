package command

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/internal/cli"
)

const fenceCheckLong = `Looks only: nothing is stored and no lock is taken, so a later holder may come between the answer and
whatever is done because of it. What must not be written by an earlier one goes below conch fence -- CMD.

Exit codes: 0 the token is not below the highest seen, or none was seen; 76 it is; 64 usage, or FILE is
damaged.`

// fenceCheck is "conch fence check".
func (c *call) fenceCheck() *cobra.Command {
	f := &fenceFile{}
	cmd := &cobra.Command{
		Use:     "check --file FILE [flags]",
		Short:   "Say whether a token is below the highest seen: 76.",
		Long:    fenceCheckLong,
		Example: "  conch fence check --file /srv/reports/token || exit",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags(), c.env); err != nil {
				return err
			}
			return f.failed(f.look())
		},
	}
	f.declare(cmd.Flags())
	cli.AddLogFormat(cmd.Flags(), &f.logFormat)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	completeWords(cmd)
	return cmd
}

// look judges the token by what the file holds now.
func (f *fenceFile) look() error {
	// A folder that is not there has seen nothing either; but it is a mistake, and yes would be the wrong answer to it.
	if _, err := os.Stat(filepath.Dir(f.path)); err != nil {
		return err
	}
	file, err := fence.NewFile(f.path)
	if err != nil {
		return err
	}
	seen, err := file.Seen()
	if err != nil {
		return err
	}
	return fence.Check(f.path, f.token, seen)
}
