package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"github.com/go-coord/coord/internal/hold/shared"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// Options say what runs work with.
type Options struct {
	// Pool has the guard.
	Pool *shared.Pool
	// Environ is the daemon's environment, without what is private to it.
	Environ []string
	// Margin is what the deadlines leave for scheduling and reaping.
	Margin time.Duration
	// Now is the clock by which it is told when a process was started. Default time.Now.
	Now func() time.Time
	// Logger gets what must be known of a run beside its result.
	Logger *slog.Logger
}

// Worker is a cron.Runner.
type Worker struct{ Options }

// New makes a worker.
func New(o Options) *Worker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Worker{o}
}

// Run is cron.Runner's.
func (w *Worker) Run(ctx context.Context, s cron.Start, h hold.Hold) cron.Ended {
	p, err := w.prepare(s)
	if err != nil {
		return cron.Ended{Err: err}
	}
	defer p.close()
	share, err := w.Pool.Guard(ctx)
	if err != nil {
		return cron.Ended{Err: err}
	}

	log := w.Logger.With(slog.String("id", s.ID.String()))
	eye := &witness{now: w.Now, started: s.Started}
	out := supervise.Run(ctx, supervise.Config{
		Kind: "cron", Name: s.Job, Path: p.file, Argv: p.argv, Env: p.env, Dir: s.Spec.Cwd,
		Stdin: p.stdin, Stdout: p.out.path, Stderr: p.out.path, Credential: p.who.credential, Umask: p.umask,
		KillAfter: s.Spec.Grace(), Margin: w.Margin, NowFunc: coord.Now, Started: eye.begun, Logger: slog.New(quiet{log.Handler()}),
	}, held{h}, share, nil)
	_ = share.Close() // what is left of the run is in the outcome already
	return w.ended(out, eye, p)
}

// ended translates how a run ended.
func (w *Worker) ended(out supervise.Outcome, eye *witness, p *prepared) cron.Ended {
	how := cron.Ended{
		Pid: eye.pid, Started: eye.at, Unclean: !out.Clean, User: out.Usage.User, Sys: out.Usage.Sys, MaxRSS: out.Usage.MaxRSS,
		Output: p.out.end(out.Clean),
	}
	switch out.Status.Outcome {
	case hold.ResultChildExit:
		how.Code = out.Status.Code
	case hold.ResultChildSignal:
		how.Code, how.Signal = out.Status.Code, out.Status.Reason
	case hold.ResultLost:
		how.Lost = out.Err
	case hold.ResultSignalled: // before there was a process: the cause says why
		how.Err = out.Err
	default:
		how.Err = out.Err
	}
	if how.Err == nil && how.Lost == nil && how.Started.IsZero() {
		how.Err = errors.New("it was not started")
	}
	return how
}

// held gives a hold that is there already to supervise.
type held struct{ h hold.Hold }

// Acquire is hold.Acquirer's.
func (a held) Acquire(context.Context, func([]byte)) (hold.Hold, error) { return a.h, nil }

// witness takes note of when the process was started, and under which number.
type witness struct {
	now     func() time.Time
	started func(pid int)
	pid     int
	at      time.Time
}

func (w *witness) begun(pid int, at time.Duration) {
	w.pid, w.at = pid, w.now().Add(-max(0, coord.Now()-at))
	w.started(pid)
}

// prepared is all that a start needs.
type prepared struct {
	who   who
	file  string
	argv  []string
	env   []string
	umask *int
	stdin string
	in    *os.File
	out   *output
}

// prepare finds out what to start, and as whom. Its error is one line.
func (w *Worker) prepare(s cron.Start) (*prepared, error) {
	p := &prepared{argv: s.Spec.Argv()}
	var err error
	if p.who, err = lookup(s.Spec.User); err != nil {
		return nil, err
	}
	if p.env, err = p.who.environ(s, w.Environ); err != nil {
		return nil, err
	}
	if p.file, err = hold.Resolve(p.argv[0], value(p.env, "PATH"), s.Spec.Cwd); err != nil {
		return nil, err
	}
	if mask, ok := s.Spec.Mask(); ok {
		m := int(mask)
		p.umask = &m
	}
	if s.Spec.Cwd != "" {
		if fi, err := os.Stat(s.Spec.Cwd); err != nil || !fi.IsDir() {
			return nil, fmt.Errorf("cwd %s: want a folder", hold.Escape(s.Spec.Cwd))
		}
	}
	if err := p.input(s.Spec.Stdin); err != nil {
		return nil, err
	}
	if p.out, err = newOutput(s.Spec, s.Job); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// input puts what the job is to read into a file without a name.
func (p *prepared) input(text string) error {
	if text == "" {
		return nil
	}
	f, err := os.CreateTemp("", "conchd-stdin-")
	if err != nil {
		return fmt.Errorf("make stdin: %w", err)
	}
	p.in = f
	if err := errors.Join(os.Remove(f.Name()), writeAll(f, text)); err != nil {
		p.close()
		return fmt.Errorf("make stdin: %w", err)
	}
	p.stdin, err = guard.Path(f)
	return err
}

func writeAll(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func (p *prepared) close() {
	if p.in != nil {
		_ = p.in.Close()
	}
	if p.out != nil {
		p.out.close()
	}
}

// value finds a variable, the last one of its name.
func value(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// quiet passes on warnings and what is worse: the daemon says itself what starts and ends.
type quiet struct{ slog.Handler }

// Enabled is slog.Handler's.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// WithAttrs and WithGroup are slog.Handler's.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

// WithGroup is said with WithAttrs.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
