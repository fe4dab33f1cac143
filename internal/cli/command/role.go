package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// Role plays the part of the guard, or of the release program, where this process was started as one. It is
// called before anything else: played is false for a process that a user started.
func Role(args []string) (code int, played bool) {
	if guard.IsRole(args) {
		return guard.Main(), true
	}
	release, closing := guard.IsRelease(args)
	if !release {
		return 0, false
	}
	s, err := releaseSettings(os.NewFile(guard.SettingsFD, "settings"))
	if err == nil {
		err = releaseFor(s, os.Stdin, closing)
	}
	if err != nil {
		return cli.Fail(cli.Env{Stderr: os.Stderr}, s.LogFormat, err), true
	}
	return hold.CodeOK, true
}

// releaseWithin bounds a release; the guard's own bound is a second more.
const releaseWithin = 9 * time.Second

// settingsLimit is more than settings have, with three files in them.
const settingsLimit = 8 << 20

// releaseSettings reads what the wrapper left for its release program.
func releaseSettings(file io.ReaderAt) (cli.Settings, error) {
	raw, err := io.ReadAll(io.NewSectionReader(file, 0, settingsLimit))
	if err != nil {
		return cli.Settings{}, fmt.Errorf("read settings: %w", err)
	}
	return cli.DecodeSettings(raw)
}

// releaseFor ends the hold that the testament describes, whose wrapper is dead and whose child is gone.
// closing closes the open record only: the wrapper is frozen, and its key runs out by itself.
//
// The testament of a start of a job is executed in either case: it only writes down that the start was lost, and the daemon, if
// it is frozen and wakes, finds that somebody said so.
func releaseFor(s cli.Settings, testament io.Reader, closing bool) error {
	raw, err := io.ReadAll(testament)
	if err != nil {
		return fmt.Errorf("read testament: %w", err)
	}
	end, start := store.ReadTestament(raw)
	var keys coord.TermKeys
	if err := json.Unmarshal(raw, &keys); err != nil && !start {
		return fmt.Errorf("read testament: %w", err)
	}
	client, err := s.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	switch {
	case start:
		return store.Execute(ctx, client, end, time.Now())
	case closing:
		return keys.CloseRecord(ctx, client, coord.End(hold.EndLost))
	}
	return keys.Release(ctx, client, coord.End(hold.EndOrphaned))
}
