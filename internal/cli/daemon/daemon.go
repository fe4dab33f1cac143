package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/worker"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"github.com/go-coord/coord/internal/hold/shared"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// partWithin bounds the end of the guard.
const partWithin = 10 * time.Second

// Daemon is conchd, with what no flag says.
type Daemon struct {
	// Now is the clock that ticks are judged by, for tests of hosts whose clocks differ. Default time.Now.
	Now func() time.Time
}

// Main is conchd, from its command line to its exit code.
func Main(ctx context.Context, env cli.Env) int { return Daemon{}.Main(ctx, env) }

// Main is the daemon, from its command line to its exit code.
func (d Daemon) Main(ctx context.Context, env cli.Env) int {
	env.Program = "conchd"
	f := &flags{}
	cmd := &cobra.Command{
		Use:           "conchd [flags]",
		Short:         "Run jobs at their ticks, each once in the whole fleet.",
		Long:          long,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.version {
				return cli.Print(env.Stdout, []byte("conchd "+cli.Version+"\n"))
			}
			if err := f.check(cmd, env, args); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, d)
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetOut(env.Stdout)
	cmd.SetErr(env.Stderr)
	cmd.SetFlagErrorFunc(cli.FlagError)
	f.declare(cmd.Flags())
	cmd.SetArgs(env.Args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		return cli.Fail(env, f.logFormat(env), err)
	}
	return hold.CodeOK
}

func (f *flags) logFormat(env cli.Env) string {
	if f.LogFormat != "" {
		return f.LogFormat
	}
	return env.LogFormat()
}

// run is the daemon.
func (f *flags) run(ctx context.Context, env cli.Env, d Daemon) error {
	if err := f.Discover(ctx, env); err != nil {
		return err
	}
	signals, stopSignals := env.Signals()
	defer stopSignals()
	log := cli.NewLogger(env.Stderr, f.Quiet, f.LogFormat)
	manager := cli.NewNotifier(env)
	defer manager.Close()

	pool, err := f.pool()
	if err != nil {
		return err
	}
	defer reaping(pool)()
	client, err := f.Client()
	if err != nil {
		return fmt.Errorf("%w: %w", hold.ErrUnreachable, err)
	}
	defer client.Close()
	if err := f.reach(ctx, client); err != nil {
		return err
	}

	hurry, after := make(chan struct{}, 1), newLegacy(pool)
	o := f.options(env, client, pool, log, manager, d.Now)
	o.Hurry, o.Proven = hurry, after.leave
	forget := after.start()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- cron.Run(ctx, o) }()
	err = heed(signals, ended, func() {
		manager.Status("draining")
		stop()
	}, hurry)

	// All results are written. What the guard still has to do with is this process.
	forget()
	bye, cancel := context.WithTimeout(context.Background(), partWithin)
	defer cancel()
	if left := pool.Close(bye); left != nil {
		log.Warn("guard", slog.String("reason", left.Error()))
	}
	return classify(err)
}

// heed waits for the end of the node. The first signal that asks to end drains it, a further one hurries it.
func heed(signals <-chan os.Signal, ended <-chan error, drain func(), hurry chan<- struct{}) error {
	draining := false
	for {
		select {
		case sig := <-signals:
			switch {
			case !supervise.AsksToEnd(sig):
			case !draining:
				draining = true
				drain()
			default:
				select {
				case hurry <- struct{}{}:
				default: // it was told already
				}
			}
		case err := <-ended:
			return err
		}
	}
}

// classify gives an error of the start its exit code.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled): // told to stop before it began
		return nil
	case errors.Is(err, coord.ErrDuplicateHost):
		return fmt.Errorf("%w: %w; another --host may be what is wanted", hold.ErrNotAcquired, err)
	}
	return cli.Classify(err)
}

// reach finds out whether etcd is there, and lets this user do what the daemon does.
func (f *flags) reach(ctx context.Context, client *clientv3.Client) error {
	needs := []cli.Need{{Key: record.Root}}
	if !f.readOnly {
		needs = append(needs, cli.Need{Key: record.Root, Writes: true})
	}
	err := f.Reach(ctx, client, func(ctx context.Context) error { return cli.Permitted(ctx, client, needs...) })
	return f.Lacking(client, needs, err)
}

func (f *flags) options(
	env cli.Env, client *clientv3.Client, pool *shared.Pool, log *slog.Logger, manager *cli.Notifier, now func() time.Time,
) cron.Options {
	own := "?"
	if u, err := user.Current(); err == nil {
		own = u.Username
	}
	return cron.Options{
		Client: client, Host: f.host, Labels: f.labels, User: own, Users: f.users,
		Runner: worker.New(worker.Options{Pool: pool, Environ: env.ChildEnviron(), Margin: f.killMargin, Now: now, Logger: log}),
		Now:    now,
		TTL:    f.ttl, Margin: f.killMargin,
		MaxRunning: f.maxRunning, DrainTimeout: orNone(f.drain), MaxSkew: f.maxSkew, ReadOnly: f.readOnly, Version: cli.Version,
		Logger:     log,
		Registered: func() { manager.Ready("node " + f.host) },
		ScanEvery:  manager.BeatEvery(),
		Busy:       collecting(env),
		Metrics:    cron.Metrics{Scanned: beats(manager)},
	}
}

// beats tells the service manager that the agenda is looked at, if it wants to hear that, and at most twice as often as it has to: in a
// burst there are thousands of looks, and each word is a socket. With looks at least every half of what is allowed, three quarters pass
// at most. nil tells nobody.
func beats(manager *cli.Notifier) func() {
	every := manager.BeatEvery()
	if every <= 0 {
		return nil
	}
	var last time.Time
	return func() {
		if now := time.Now(); now.Sub(last) >= every/2 {
			last = now
			manager.Beat()
		}
	}
}

// orNone makes no time at all of 0, which in Options is the default.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// pool has one guard for all runs. What a job does not ask for by itself, it gets from /dev/null: the daemon's own streams are
// its log's.
func (f *flags) pool() (*shared.Pool, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hold.ErrNoGuard, err)
	}
	return shared.New(func() (*guard.Client, error) {
		o := guard.Options{Settings: f.Settings.Encode(), Stdin: null, Stdout: null, Stderr: null}
		if f.guard == "off" {
			return guard.InProcess(o)
		}
		if self, err := os.Executable(); err == nil {
			o.Path = guard.Locate(self)
		}
		release, err := os.Open("/proc/self/exe")
		if err == nil {
			o.Release = release
			defer release.Close()
		}
		return guard.Start(o)
	}), nil
}

// reaping takes away what has come to this process and ended, since it is a subreaper, and may be the first process of a
// container. The returned function ends it.
func reaping(pool *shared.Pool) (stop func()) {
	children, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		defer close(done)
		for range children {
			pool.Reap()
		}
	}()
	return func() { signal.Stop(children); close(children); <-done }
}
