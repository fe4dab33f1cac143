package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/manifest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

const cronEditLong = `Opens a job as YAML in $VISUAL, else $EDITOR, else vi. What is saved is checked, and written if the job is still the one
that was opened. Where nothing is changed nothing is written. What cannot be written is kept in a file.

Exit codes: 0; 1 there is no such job, what was saved is none, somebody else changed it meanwhile, or the editor
failed; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronEdit is "conch cron edit".
func (c *call) cronEdit() *cobra.Command {
	f := &cli.Connection{}
	cmd := &cobra.Command{
		Use:     "edit NAME [flags]",
		Short:   "Change a job in an editor.",
		Long:    cronEditLong,
		Example: "  conch cron edit backup\n  EDITOR='code --wait' conch cron edit backup",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			if err := jobArguments(args, 1, 1, "edit NAME"); err != nil {
				return err
			}
			return c.withJobs(cmd.Context(), f, func(a *cronJobs) error { return c.editJob(cmd.Context(), a, args[0]) })
		},
	}
	cmd.Flags().SortFlags = false
	f.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(f, record.Jobs, 1)
	completeWords(cmd)
	return cmd
}

func (c *call) editJob(ctx context.Context, a *cronJobs, name string) error {
	was, err := a.find(ctx, name)
	if err != nil {
		return err
	}
	old, err := parsed(was)
	if err != nil {
		return refuse(hold.ErrNo, "%s", err.Error())
	}
	shownJob := manifest.Authored(old)
	shownJob.Paused = nil
	before := manifest.YAML(name, shownJob)
	dir, after, err := c.edited(ctx, before)
	if err != nil {
		return err
	}
	ch := jobChange{was: was, verb: jobUnchanged}
	if !bytes.Equal(before, after) {
		if ch, err = a.save(ctx, ch, after); err != nil {
			return fmt.Errorf("%w; what was saved is in %s", err, hold.Escape(dir.file()))
		}
	}
	dir.remove()
	return cli.Print(c.env.Stdout, fmt.Appendf(nil, "%s %s\n", ch.verb, name))
}

// save writes what was edited, once.
func (a *cronJobs) save(ctx context.Context, ch jobChange, text []byte) (jobChange, error) {
	name := ch.was.Name
	j, err := onlyJob(name, text)
	if err != nil {
		return ch, err
	}
	ch = a.changeTo(ch.was, j)
	if err := ch.check(a.now()); err != nil {
		return ch, refuse(hold.ErrNo, "%s", err.Error())
	}
	ok, err := a.make(ctx, ch)
	if err == nil && !ok {
		err = refuse(hold.ErrNo, "somebody else changed or removed the job %s meanwhile; nothing was written", name)
	}
	return ch, err
}

// onlyJob is the one job of a text, which has to have that name.
func onlyJob(name string, text []byte) (*job.Job, error) {
	r, err := manifest.NewReader()
	if err != nil {
		return nil, err
	}
	r.Read("edited.yaml", text)
	switch {
	case len(r.Faults) > 0:
		return nil, refuse(hold.ErrNo, "%s", r.Faults[0].Error())
	case len(r.Entries) != 1:
		return nil, refuse(hold.ErrNo, "%d jobs were saved: want the one of that name", len(r.Entries))
	case r.Entries[0].Name != name:
		return nil, refuse(hold.ErrNo, "name: is %s: want it as it was, %s", r.Entries[0].Name, name)
	}
	return r.Entries[0].Job, nil
}

// editFolder is where a text is edited: what editors put beside it goes with it.
type editFolder string

func (d editFolder) file() string { return filepath.Join(string(d), "job.yaml") }
func (d editFolder) remove()      { _ = os.RemoveAll(string(d)) }

// edited opens a text in the user's editor and gives what was saved, and where it is.
func (c *call) edited(ctx context.Context, text []byte) (editFolder, []byte, error) {
	path, err := os.MkdirTemp("", "conch-edit-") // for nobody else's eyes
	if err != nil {
		return "", nil, refuse(hold.ErrNo, "make a folder for the editor: %s", hold.Escape(err.Error()))
	}
	dir := editFolder(path)
	if err := os.WriteFile(dir.file(), text, 0o600); err != nil {
		dir.remove()
		return "", nil, refuse(hold.ErrNo, "write a file for the editor: %s", hold.Escape(err.Error()))
	}
	if err := c.runEditor(ctx, dir.file()); err != nil {
		dir.remove()
		return "", nil, err
	}
	saved, err := os.ReadFile(dir.file())
	if err != nil {
		dir.remove()
		return "", nil, refuse(hold.ErrNo, "read what was saved: %s", hold.Escape(err.Error()))
	}
	return dir, saved, nil
}

// runEditor runs it as everybody does: by a shell, since it may have arguments. Signals from the terminal are the editor's.
func (c *call) runEditor(ctx context.Context, file string) error {
	editor := ""
	for _, variable := range []string{"VISUAL", "EDITOR"} {
		if value, ok := c.env.Lookup(variable); ok && editor == "" {
			editor = value
		}
	}
	if editor == "" {
		if _, _, terminal := terminalSize(c.env.Stdout); !terminal {
			return refuse(hold.ErrNo, "no editor is named by $VISUAL or $EDITOR, and there is no terminal for vi; nothing was written")
		}
		editor = "vi"
	}
	_, stop := c.env.Signals()
	defer stop()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = c.env.Stdin, c.env.Stdout, c.env.Stderr, c.env.ChildEnviron()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return refuse(hold.ErrNo, "the editor %s ended with %s; nothing was written", cli.Quote(editor), exit.ProcessState)
	case err != nil:
		return refuse(hold.ErrNo, "run the editor %s: %s", cli.Quote(editor), hold.Escape(err.Error()))
	}
	return nil
}
