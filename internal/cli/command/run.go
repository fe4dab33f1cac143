package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// tidyAfter is when memory is given back to the system. A short child is over by then.
const tidyAfter = time.Second

// task is what one command has of its own in what all do that run a child while something is held.
type task struct {
	kind    string // hold.KindElect or hold.KindSema
	name    string
	doing   string // what it does while the child runs, for the service manager
	standby bool   // see candidacy
	contest func(*progress) contest
}

// run runs argv while what t names is held and returns the exit code; under --restart again and again.
func (c *call) run(ctx context.Context, f *runFlags, t task, argv []string) (int, error) {
	file, err := c.find(ctx, &f.Connection, f.statusFile, argv[0])
	if err != nil {
		return 0, err
	}
	signals, stop := c.env.Signals()
	defer stop()
	log := cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat)
	if f.settle == "off" {
		log.Warn("settling is off: if a hold ended early, its child may still run beside this one", "name", t.name)
	}

	manager := cli.NewNotifier(c.env)
	defer manager.Close()

	var again pauses
	var resolved error // of this round's look for the command
	for {
		var out supervise.Outcome
		if resolved != nil { // it has gone since: no office is taken for that
			out = notBegun(resolved)
		} else {
			out = c.round(ctx, f, t, file, argv, signals, log, manager)
		}
		c.writeStatus(f.Connection, f.statusFile, out.Status)
		if !f.restart || again.over(out) {
			c.interrupted(out.Interrupted)
			return out.Status.Code, c.failure(out)
		}
		var sig signalled
		if err := again.rest(ctx, signals, log, manager, t.name, out); errors.As(err, &sig) {
			c.writeStatus(f.Connection, f.statusFile, sig.status())
			c.interrupted(supervise.IsInterrupt(syscall.Signal(sig)))
			return sig.status().Code, nil
		}
		c.began = time.Now()
		file, resolved = c.resolve(argv[0])
	}
}

// interrupted passes on a Ctrl-C to whoever started this process.
func (c *call) interrupted(yes bool) {
	if yes && c.env.Interrupted != nil {
		c.env.Interrupted()
	}
}

// resolve looks for a command in the PATH of this process.
func (c *call) resolve(command string) (file string, err error) {
	path, _ := c.env.Lookup("PATH")
	return hold.Resolve(command, path, "")
}

// round acquires, runs file, and releases: once. Each has a guard, a connection and a session of its own, so that nothing
// of the one before can be taken for it.
func (c *call) round(ctx context.Context, f *runFlags, t task, file string, argv []string, signals <-chan os.Signal, log *slog.Logger, manager *cli.Notifier) supervise.Outcome {
	acquire := func(client *clientv3.Client) acquirer {
		return c.candidacy(f, t, argv, client, &progress{log: log, name: t.name, began: c.began, manager: manager})
	}
	return c.under(ctx, acquire, f.Settings, f.childFlags, supervise.Config{
		Kind: t.kind, Name: t.name, Path: file, Argv: argv,
		OnAcquire: f.hooks.onAcquire, OnLose: f.hooks.onLose, FenceOnLose: f.hooks.fence, HookTimeout: f.hooks.timeout,
		Started: func(int, time.Duration) { manager.Ready(t.doing) },
		Logger:  log,
	}, signals, manager)
}

// acquirer is what a command holds something by. close ends what Acquire began, and the connection, after a run that
// ended like out.
type acquirer interface {
	hold.Acquirer
	close(out supervise.Outcome)
}

// under is the one way in which a command runs a child: with a guard, a connection, and what acquire makes of that.
func (c *call) under(ctx context.Context, acquire func(*clientv3.Client) acquirer, s cli.Settings, f childFlags, cfg supervise.Config, signals <-chan os.Signal, manager *cli.Notifier) supervise.Outcome {
	client, g, err := connect(f.guard, s)
	if err != nil {
		return notBegun(err)
	}
	defer reaping(g)()

	a := acquire(client)

	// What starting needed is given back, once it has turned out that the child stays: this process waits for days.
	tidy := time.AfterFunc(tidyAfter, debug.FreeOSMemory)
	defer tidy.Stop()

	cfg.Env, cfg.KillAfter, cfg.Margin = c.env.ChildEnviron(), f.killAfter, f.killMargin
	cfg.Foreground, cfg.NowFunc = true, coord.Now
	cfg.Beat, cfg.BeatEvery = manager.Beat, manager.BeatEvery()
	out := supervise.Run(ctx, cfg, a, g, signals)

	// The guard leaves while the lease is revoked.
	farewell := make(chan error, 1)
	go func() { farewell <- g.Close() }()
	a.close(out)
	parted(farewell, g, out)
	return out
}

// connect makes the connection and starts the guard, both at once. That comes up while the lease is granted: nobody waits for
// it until there is something to start.
func connect(mode string, s cli.Settings) (client *clientv3.Client, g *guard.Client, err error) {
	var noGuard error
	var starting sync.WaitGroup
	starting.Go(func() { g, noGuard = startGuard(mode, s) })
	client, noClient := s.Client()
	starting.Wait()
	switch {
	case noGuard == nil && noClient == nil:
		return client, g, nil
	case noClient == nil:
		_ = client.Close()
		return nil, nil, fmt.Errorf("%w: %w", hold.ErrNoGuard, noGuard)
	case noGuard == nil:
		_ = g.Close()
	}
	return nil, nil, fmt.Errorf("%w: %w", hold.ErrUnreachable, noClient)
}

// notBegun is how a round ends that could not even try to acquire.
func notBegun(err error) supervise.Outcome {
	result := hold.ResultUnreachable
	switch {
	case errors.Is(err, hold.ErrNotFound), errors.Is(err, hold.ErrNotExecutable):
		result = hold.ResultNotStarted
	case errors.Is(err, hold.ErrNotAcquired):
		result = hold.ResultNotAcquired
	case errors.Is(err, hold.ErrFenced):
		result = hold.ResultFenced
	}
	return supervise.Outcome{
		Status: hold.Status{Outcome: result, Code: hold.ExitCode(err), Reason: err.Error()},
		Clean:  true, Err: err,
	}
}

// find finds the command and, where only a domain was given, the endpoints. A typo never takes an office: the
// command is looked for before anything else.
func (c *call) find(ctx context.Context, f *cli.Connection, statusFile, command string) (file string, err error) {
	file, err = c.resolve(command)
	if err == nil {
		err = f.Discover(ctx, c.env)
	}
	if err != nil {
		c.writeStatus(*f, statusFile, notBegun(err).Status)
	}
	return file, err
}

// candidacy is what acquires, from what the user said.
func (c *call) candidacy(f *runFlags, t task, argv []string, client *clientv3.Client, p *progress) *candidacy {
	a := &candidacy{
		contest: t.contest(p), kind: t.kind, settings: f.Settings, session: f.session(), client: client,
		name: t.name, identity: identity(f, c.began, argv),
		nonblock: f.nonblock, standby: t.standby, log: p.log, progress: p,
	}
	if f.waits && !f.nonblock {
		a.until = c.began.Add(f.wait)
	}
	return a
}

// parted waits for the guard's end. One that has nothing to end and does not leave is stopped: it is ended.
func parted(farewell <-chan error, g *guard.Client, out supervise.Outcome) {
	if !out.Started {
		select {
		case <-farewell:
			return
		case <-time.After(partWithin):
			g.Kill()
		}
	}
	<-farewell // a guard that had to be killed has nothing left to guard
}

// partWithin is how long a guard that never had a child may take to leave.
const partWithin = 500 * time.Millisecond

// reaping takes away what has come to this process and ended, since it is a subreaper, and may be the first process
// of a container. The returned function ends it.
func reaping(g *guard.Client) (stop func()) {
	children, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(children, syscall.SIGCHLD)
	g.Reap() // what ended before anybody listened
	go func() {
		defer close(done)
		for range children {
			g.Reap()
		}
	}()
	return func() { signal.Stop(children); close(children); <-done }
}

// failure says why nothing was started. What happened to a child is in the log already, and who sent a signal
// knows of it.
func (c *call) failure(out supervise.Outcome) error {
	if out.Started {
		return nil
	}
	switch out.Status.Outcome {
	case hold.ResultNotAcquired, hold.ResultUnreachable, hold.ResultNotStarted, hold.ResultFenced:
		return out.Err
	}
	return nil
}

// startGuard starts the guard, or what stands in for it where none is wanted.
func startGuard(mode string, s cli.Settings) (*guard.Client, error) {
	if mode == "off" {
		return guard.InProcess(guard.Options{})
	}
	o := guard.Options{Settings: s.Encode()}
	if self, err := os.Executable(); err == nil {
		o.Path = guard.Locate(self)
	}
	// The release program is this very file, whatever stands at its path by the time it is needed.
	release, err := os.Open("/proc/self/exe")
	if err == nil {
		o.Release = release
		defer release.Close()
	}
	return guard.Start(o)
}

// identity is the value of our key: who we are, for people.
func identity(f *runFlags, began time.Time, argv []string) string {
	if f.noCmd {
		argv = nil
	}
	return hold.NewHolder(hostname(), os.Getpid(), began, argv).Encode()
}

// writeStatus writes the status file, where one is wanted.
func (c *call) writeStatus(f cli.Connection, file string, s hold.Status) {
	if file == "" {
		return
	}
	if err := hold.WriteStatus(file, s); err != nil {
		cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat).Warn("no status file", "reason", err.Error())
	}
}
