package dev

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/embed"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// How long an endpoint may take to answer before it counts as dead, and a member to start.
const (
	probeTime = time.Second
	startTime = 30 * time.Second
)

// Dev is conch-dev.
type Dev struct {
	// Run is conch: any of its commands.
	Run func(ctx context.Context, env cli.Env) int
	// Daemon is conchd. While the member is served, one runs on it. nil: none does.
	Daemon func(ctx context.Context, env cli.Env) int
	// Self is the program to start as the shared member: one that calls embed.Role first.
	Self string
	// Default is the endpoint of commands that name none. Default: conch's own, localhost:2379.
	Default string
	// Grace is how long the shared member stays without clients. Default: see embed.Shared.
	Grace time.Duration
}

// Main serves when there are no arguments or "serve", explains itself where asked to, and else runs a conch
// command, on the shared member where no endpoint is named and nothing answers at the default. It returns the
// exit code.
func (d Dev) Main(ctx context.Context, env cli.Env) int {
	switch {
	case len(env.Args) == 0:
		return d.serve(ctx, env, true)
	case asksHelp(env.Args, ""):
		return d.help(ctx, env)
	case asksHelp(env.Args, "serve"):
		if err := cli.Print(env.Stdout, []byte(serveHelp)); err != nil {
			return cli.Fail(env, env.LogFormat(), err)
		}
		return hold.CodeOK
	case env.Args[0] == "serve":
		if len(env.Args) > 1 {
			return cli.Fail(env, env.LogFormat(), cli.Usagef("serve takes no arguments, got %s", cli.Quote(env.Args[1])))
		}
		return d.serve(ctx, env, false)
	}

	// What needs no member.
	line := parse(env.Args)
	if line.offline() || line.certain(env) {
		return d.Run(ctx, env)
	}
	want := cmp.Or(d.Default, fallback)
	probe, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if embed.Answers(probe, []string{want}) {
		return d.Run(ctx, env)
	}

	// What does.
	shared, err := d.shared(env)
	if err != nil {
		return cli.Fail(env, line.logFormat(env), err)
	}
	start, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	endpoint, started, err := shared.Ensure(start)
	if err != nil {
		return cli.Fail(env, line.logFormat(env), err)
	}
	line.announce(env, want, endpoint, started)
	return d.Run(ctx, line.at(env, endpoint))
}

func (d Dev) shared(env cli.Env) (embed.Shared, error) {
	dir, err := embed.DefaultDir(func(name string) string {
		v, _ := env.Lookup(name)
		return v
	})
	return embed.Shared{Dir: dir, Self: d.Self, Grace: d.Grace}, err
}

// daemon is the conchd that runs on the member while that is served. It ends first: it has results to write.
type daemon struct {
	signals chan os.Signal
	done    chan struct{} // closed when it has ended; nil: it was never started
}

// start runs it on an endpoint.
func (d *daemon) start(ctx context.Context, run func(context.Context, cli.Env) int, env cli.Env, endpoint string) {
	if run == nil || d.done != nil {
		return
	}
	d.done = make(chan struct{})
	env.Name, env.Args = "conchd", []string{"--endpoints", endpoint}
	env.Signals = func() (<-chan os.Signal, func()) { return d.signals, func() {} }
	env.Notify, env.Interrupted = nil, nil
	go func() {
		defer close(d.done)
		run(ctx, env) // what it has to say it has said
	}()
}

// end passes on a signal, and gives what is closed when it has ended.
func (d *daemon) end(sig os.Signal) <-chan struct{} {
	if d.done == nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	select {
	case d.signals <- sig:
	default: // it has two to think about
	}
	return d.done
}

// serve runs the shared member, or keeps it alive, until it is told to end.
func (d Dev) serve(ctx context.Context, env cli.Env, hints bool) int {
	shared, err := d.shared(env)
	if err != nil {
		return cli.Fail(env, env.LogFormat(), err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals, stop := env.Signals()
	defer stop()
	inside := &daemon{signals: make(chan os.Signal, 2)}
	at, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- shared.Serve(ctx, func(endpoint string, ours bool) {
			where := "served here until Ctrl-C"
			if !ours {
				where = "runs already; kept alive until Ctrl-C"
			}
			fmt.Fprintf(env.Stdout, "etcd member at %s: %s\n", endpoint, where)
			if hints {
				fmt.Fprintf(env.Stdout, tries, endpoint)
				hints = false
			}
			select {
			case at <- endpoint:
			default: // it runs already, on the member that was there before
			}
		})
	}()
	var ended <-chan struct{}
	for {
		select {
		case endpoint := <-at:
			inside.start(ctx, d.Daemon, env, endpoint)
		case s := <-signals:
			if supervise.AsksToEnd(s) {
				ended = inside.end(s)
			}
		case <-ended:
			ended = nil
			cancel()
		case err := <-done:
			cancel()
			if inside.done != nil { // the member has gone: there is nothing to drain for
				<-inside.end(syscall.SIGTERM)
			}
			if err != nil {
				return cli.Fail(env, env.LogFormat(), err)
			}
			return hold.CodeOK
		}
	}
}

// tries is what somebody who sees this for the first time can do next.
const tries = `
Try in other shells:
  conch-dev elect hello -- sh -c 'echo "I lead with token $CONCH_REV"; sleep 30'
  conch-dev elect hello -- echo "now I do"      # waits for the first to end
  conch-dev elect hello --who

Jobs run here, too:
  conch-dev cron add hello --schedule '@every 10s' -- sh -c 'echo "tick $CONCH_TICK"'
  conch-dev cron history hello
  conch-dev cron why hello

For conch and etcdctl:
  export CONCH_ENDPOINTS=%[1]s ETCDCTL_ENDPOINTS=%[1]s
`
