package shared

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// now reads the clock that the guard counts on.
func now() hold.Instant {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return hold.Instant(ts.Nano())
}

// held is a hold of a lease that all runs of a daemon share. It is not renewed, and lost when the test says so.
type held struct {
	deadlines hold.Deadlines
	lost      <-chan struct{}
}

func (h held) Info() hold.Info {
	return hold.Info{Kind: hold.KindElect, Name: "job", Rev: 12, Lease: 0x1f, Slot: -1, TTL: time.Hour}
}
func (h held) Deadlines() hold.Deadlines                                { return h.deadlines }
func (h held) Renewed() <-chan struct{}                                 { return nil }
func (h held) Lost() <-chan struct{}                                    { return h.lost }
func (h held) Cause() error                                             { return nil }
func (h held) Evicted() <-chan error                                    { return nil }
func (h held) Release(context.Context, hold.End) error                  { return nil }
func (h held) Testament() []byte                                        { return []byte("{}") }
func (h held) Acquire(context.Context, func([]byte)) (hold.Hold, error) { return h, nil }

// lasting is a hold that outlasts its test.
func lasting() held {
	return held{deadlines: hold.Deadlines{Term: now() + time.Hour, Kill: now() + 2*time.Hour}}
}

// house is a pool of real guards, and what their children write: each line, and the end when nobody is left who could.
type house struct {
	t     *testing.T
	pool  *Pool
	lines chan string // closed at the end of a generation
}

func newHouse(t *testing.T) *house {
	h := &house{t: t}
	h.pool = New(func() (*guard.Client, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		lines := make(chan string, 4096)
		h.lines = lines
		go func() {
			defer close(lines)
			defer r.Close()
			for scan := bufio.NewScanner(r); scan.Scan(); {
				lines <- scan.Text()
			}
		}()
		defer w.Close()
		return guard.Start(guard.Options{Stdout: w, Stderr: w, Env: []string{"GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}})
	})
	return h
}

// run runs a script to its end, as the daemon runs a job.
func (h *house) run(s *Share, over held, script string) supervise.Outcome {
	defer s.Close()
	return supervise.Run(context.Background(), supervise.Config{
		Kind: hold.KindElect, Name: "job", Path: "/bin/sh", Argv: []string{"sh", "-c", script},
		Env: []string{"PATH=" + os.Getenv("PATH")}, KillAfter: time.Second, Margin: 500 * time.Millisecond, NowFunc: now,
	}, over, s, nil)
}

// until waits for as many lines of this kind.
func (h *house) until(n int, word string) {
	h.t.Helper()
	for late := time.After(patience); n > 0; {
		select {
		case line, ok := <-h.lines:
			if !ok {
				h.t.Fatal("everybody has ended")
			}
			if strings.HasPrefix(line, word) {
				n--
			}
		case <-late:
			h.t.Fatalf("%d are missing", n)
		}
	}
}

// empty waits until nobody of a generation is left: guard, children, and what those detached.
func (h *house) empty(lines <-chan string) {
	h.t.Helper()
	for late := time.After(patience); ; {
		select {
		case _, ok := <-lines:
			if !ok {
				return
			}
		case <-late:
			h.t.Fatal("somebody is left")
		}
	}
}

// guardOf hears of the guard's pid from a share of its own.
func (h *house) guardOf() int {
	h.t.Helper()
	s := share(h.t, h.pool)
	defer s.Close()
	return hear(h.t, s).Pid
}

// Each run gets the end of its own child. Red when names are not told apart: all of them are "1f-1".
func TestFiftyRunsUnderOneGuard(t *testing.T) {
	h := newHouse(t)
	outcomes := make([]supervise.Outcome, 50)
	done := make(chan int)
	for i := range outcomes {
		s := share(t, h.pool)
		go func() {
			outcomes[i] = h.run(s, lasting(), fmt.Sprint("exit ", i))
			done <- i
		}()
	}
	for range outcomes {
		<-done
	}
	for i, o := range outcomes {
		if o.Status.Outcome != hold.ResultChildExit || o.Status.Code != i || !o.Released || !o.Clean {
			t.Errorf("run %d: %+v", i, o)
		}
	}
	shut(t, h.pool)
	h.empty(h.lines)
}

// detaching ignores SIGTERM, and has a process in a session of its own that does too.
const detaching = `trap "" TERM; setsid sh -c 'trap "" TERM; echo up; exec sleep 600' & echo up; wait; sleep 600`

// A guard that is killed, or stopped for longer than a run may take to end, takes all of them with it, and a new one works.
// Red when only the share that noticed hears of it, when nobody sweeps, or when the next guard is started before the end of that.
func TestAGuardThatFailsEndsAllOfItsRuns(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP} {
		h := newHouse(t)
		over, lost := lasting(), make(chan struct{})
		over.lost = lost
		const runs = 20
		done := make(chan supervise.Outcome)
		for range runs {
			s := share(t, h.pool)
			go func() { done <- h.run(s, over, detaching) }()
		}
		h.until(2*runs, "up")
		pid, before := h.guardOf(), h.lines
		if err := unix.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		if signal == unix.SIGSTOP {
			close(lost)
		}
		for range runs {
			if o := <-done; o.Status.Outcome != hold.ResultLost || !o.Started || !o.Clean || !o.Released {
				t.Errorf("%v: %+v", signal, o)
			}
		}
		h.empty(before)

		if o := h.run(share(t, h.pool), lasting(), "exit 7"); o.Status.Outcome != hold.ResultChildExit || o.Status.Code != 7 {
			t.Errorf("%v, afterwards: %+v", signal, o)
		}
		if h.guardOf() == pid {
			t.Error("the same guard")
		}
		shut(t, h.pool)
		h.empty(h.lines)
	}
}

// Red when Reap is that of a generation before: it would take the guard away from whoever waits for it.
func TestReapLeavesTheGuardAlone(t *testing.T) {
	h := newHouse(t)
	h.pool.Reap() // before the first
	pid := h.guardOf()
	s := share(t, h.pool)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for e := hear(t, s); e.Kind != guard.KindLost; e = hear(t, s) {
		h.pool.Reap()
	}
	s.Close()
	if h.guardOf() == pid {
		t.Error("the same guard")
	}
	h.pool.Reap()
	if o := h.run(share(t, h.pool), lasting(), "exit 3"); o.Status.Code != 3 {
		t.Errorf("%+v", o)
	}
	shut(t, h.pool)
}
