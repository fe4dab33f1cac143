package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

const began = "bequeath 1f-1, start 1f-1 until 3600/8600"

func TestRunFromStartToRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.in(1100*ms, func() { s.hold.renew(s.now()) })
		s.in(2*time.Second, func() { s.guard.end(3) })
		o := s.run()
		s.wants(o, hold.ResultChildExit, 3, 2*time.Second,
			began+", extend 1f-1 until 4600/9600, forget 1f-1", hold.EndReleased)
		if !o.Started || !o.Released || o.Err != nil || o.Status.Waited != 100*ms || o.Status.Held != 1900*ms {
			t.Errorf("outcome %+v", o)
		}
		want := strings.Join([]string{
			`level=INFO msg=acquired name=office rev=12 dur=100ms lease=1f ttl=10s renew=1s silence=2.5s term=3.5s kill=8.5s`,
			`level=INFO msg=child-start name=office rev=12 dur=0s pid=42`,
			`level=INFO msg=child-exit name=office rev=12 dur=1.9s code=3`,
			`level=INFO msg=released name=office rev=12 dur=0s reason=released`,
		}, "\n") + "\n"
		if s.log.String() != want {
			t.Errorf("log:\n%swant:\n%s", s.log.String(), want)
		}
	})
}

func TestRunLeavesTheGuardWhatTakesAWaiterAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.in(2*time.Second, func() { s.guard.end(0) })
		// More places than are heard of, one after the other: the acquirer is not held up, the last one counts.
		o := Run(s.ctx, s.cfg, queuer{s.acquire, 3}, s.guard, s.signals)
		sent := s.guard.told()
		before, after, found := strings.Cut(sent, "bequeath 1f-1, ")
		if o.Status.Code != 0 || !found || !strings.HasPrefix(before, "bequeath queued-1, ") || !strings.HasPrefix(after, "forget queued-") {
			t.Errorf("outcome %+v, the guard was told %s", o, sent)
		}
	})
}

func TestRunEndsTheChildWhenTheHoldIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.in(2*time.Second, func() { s.hold.lose(fmt.Errorf("%w: key gone", hold.ErrLost)) })
		o := s.run()
		s.wants(o, hold.ResultLost, 70, 3*time.Second, began+", stop 1f-1 by 7000, forget 1f-1", hold.EndLost)
		if !errors.Is(o.Err, hold.ErrLost) || o.Status.Reason != "hold lost: key gone" {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestRunEndsTheChildWhenAnOperatorAsksForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.in(2*time.Second, func() { s.hold.evicted <- fmt.Errorf("%w: asked by the test", hold.ErrEvicted) })
		o := s.run()
		s.wants(o, hold.ResultEvicted, 70, 3*time.Second, began+", stop 1f-1 by 7000, forget 1f-1", hold.EndEvicted)
		if !errors.Is(o.Err, hold.ErrEvicted) || o.Status.Reason != "hold evicted: asked by the test" {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestRunTakesLossBeforeAnExitThatIsThereToo(t *testing.T) {
	t.Parallel()
	for range 20 { // select draws lots
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			s.in(2*time.Second, func() {
				s.guard.end(0)
				s.hold.lose(nil)
			})
			s.guard.answer = func(g *fakeGuard, r guard.Request) {
				if r.Op == guard.OpStart {
					obedient(g, r)
				}
			}
			o := s.run()
			s.wants(o, hold.ResultLost, 70, 2*time.Second, began+", stop 1f-1 by 7000, forget 1f-1", hold.EndLost)
		})
	}
}

func TestRunStartsNothingOnAHoldThatIsLostAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.hold.lose(hold.ErrLost)
		o := s.run()
		s.wants(o, hold.ResultLost, 70, 100*ms, "bequeath 1f-1, forget 1f-1", hold.EndLost)
		if o.Started {
			t.Error("it says that the child was started")
		}
	})
}

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.in(time.Second, func() { s.signals <- syscall.SIGUSR1 })
		s.in(2*time.Second, func() { s.signals <- syscall.SIGHUP })
		o := s.run()
		s.wants(o, hold.ResultChildExit, 0, 3*time.Second,
			began+", signal 1f-1 SIGUSR1, stop 1f-1 by 7000, forget 1f-1", hold.EndReleased)
	})
}

func TestRunTakesTheEndOfItsContextForATerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		s.ctx = ctx
		s.hold.releases = func(ctx context.Context, _ int) error { return ctx.Err() } // cleaning up goes on
		s.in(2*time.Second, cancel)
		o := s.run()
		s.wants(o, hold.ResultChildExit, 0, 3*time.Second, began+", stop 1f-1 by 7000, forget 1f-1", hold.EndReleased)
	})
}

func TestRunSignalledWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		cleaned := false
		s.acquire = func(ctx context.Context) (hold.Hold, error) {
			<-ctx.Done()
			time.Sleep(20 * ms) // bubble time: what it takes to delete the own key
			cleaned = true
			return nil, ctx.Err()
		}
		s.in(2*time.Second, func() { s.signals <- syscall.SIGTERM })
		o := s.run()
		s.wants(o, hold.ResultSignalled, 143, 2020*ms, "")
		if !cleaned {
			t.Error("it did not wait for the acquirer")
		}
	})
}

func TestRunLeavesAnAcquirerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		hung := make(chan struct{})
		s.acquire = func(context.Context) (hold.Hold, error) { <-hung; return nil, hold.ErrNotAcquired }
		s.in(2*time.Second, func() { s.signals <- syscall.SIGINT })
		s.in(4*time.Second, func() { s.signals <- syscall.SIGINT })
		o := s.run()
		s.wants(o, hold.ResultSignalled, 130, 5*time.Second, "")
		if !strings.Contains(s.log.String(), "level=WARN") {
			t.Error("nothing says that a key may be left behind")
		}
		close(hung)
	})
}

func TestRunGivesUpOnAGuardThatDoesNotComeUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		wins bool
		sent string
		ends []hold.End
	}{
		{"while waiting", false, "", nil},
		{"while it holds", true, "bequeath 1f-1", []hold.End{hold.EndReleased}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.guard.events = make(chan guard.Event, 4) // without the one that says ready
				if !tt.wins {
					s.acquire = func(ctx context.Context) (hold.Hold, error) { <-ctx.Done(); return nil, ctx.Err() }
				}
				for i := range 10 {
					s.in(time.Duration(i)*time.Second, func() { s.hold.renew(s.now()) })
				}
				o := s.run()
				s.wants(o, hold.ResultUnreachable, 69, readyWithin, tt.sent, tt.ends...)
				if !errors.Is(o.Err, hold.ErrNoGuard) {
					t.Errorf("err = %v", o.Err)
				}
			})
		})
	}
}

func TestRunReportsWhyNothingWasAcquired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.acquire = func(context.Context) (hold.Hold, error) {
			return nil, fmt.Errorf("%w: held by node2", hold.ErrNotAcquired)
		}
		o := s.run()
		s.wants(o, hold.ResultNotAcquired, 75, 0, "")
		if o.Status.Reason != "not acquired: held by node2" || s.log.Len() != 0 {
			t.Errorf("outcome %+v, log %s", o, s.log.String())
		}
	})
}

// A frozen guard says nothing. The loop ends it half a margin past the deadline.
func TestRunEndsAFrozenGuard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		sweepErr error
		ended    time.Duration
		ends     []hold.End
		reason   string
	}{
		{"and releases when nothing is left", nil, 8850 * ms, []hold.End{hold.EndLost}, "hold lost: no verified renewal before the deadline"},
		{"and does not release when something is", errors.New("pid 7 is alive"), 13850 * ms, nil, "pid 7 is alive"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.guard.sweepErr = tt.sweepErr
				s.guard.killAt = func() {
					if s.now() != 8850*ms {
						t.Errorf("the guard was killed at %v, want 8.85s", s.now())
					}
				}
				s.in(time.Second, func() { s.guard.becomes(nil, nil) })
				s.in(3600*ms, func() { s.hold.lose(errSilent) })
				o := s.run()
				s.wants(o, hold.ResultLost, 70, tt.ended, began+", stop 1f-1 by 8600", tt.ends...)
				if s.guard.swept != 1 || !strings.Contains(o.Status.Reason, tt.reason) {
					t.Errorf("swept %d times, reason %q", s.guard.swept, o.Status.Reason)
				}
			})
		})
	}
}

func TestRunSweepsWhenTheGuardWasKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.in(2*time.Second, s.guard.hangUp)
		o := s.run()
		s.wants(o, hold.ResultLost, 70, 2*time.Second, began, hold.EndLost)
		if s.guard.swept != 1 {
			t.Errorf("swept %d times", s.guard.swept)
		}
	})
}

func TestRunEndsAGuardThatTakesNoRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.in(time.Second, func() { s.guard.becomes(nil, errors.New("the pipe is broken")) })
		s.in(1100*ms, func() { s.hold.renew(s.now()) })
		o := s.run()
		s.wants(o, hold.ResultLost, 70, 1100*ms, began, hold.EndLost)
		if s.guard.swept != 1 || o.Status.Reason != "hold lost: the guard is gone: the pipe is broken" {
			t.Errorf("swept %d times, reason %q", s.guard.swept, o.Status.Reason)
		}
	})
}

func TestRunIsNotHeldUpByALogThatNobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		full := make(chan struct{})
		s.cfg.Logger = slog.New(slog.NewTextHandler(pipe(full), nil))
		s.in(1100*ms, func() { s.hold.renew(s.now()) })
		s.in(2*time.Second, func() { s.guard.end(3) })
		o := s.run()
		s.wants(o, hold.ResultChildExit, 3, 2*time.Second+closeWithin,
			began+", extend 1f-1 until 4600/9600, forget 1f-1", hold.EndReleased)
		close(full)
	})
}

// pipe is a writer that blocks until it is closed.
type pipe chan struct{}

func (p pipe) Write(b []byte) (int, error) { <-p; return len(b), nil }

func TestRunBoundsEachAttemptToReleaseAndTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.hold.releases = func(ctx context.Context, try int) error {
			if try < 3 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		s.in(time.Second, func() { s.guard.end(0) })
		o := s.run()
		s.wants(o, hold.ResultChildExit, 0, time.Second+2*releaseTry+300*ms, began+", forget 1f-1",
			hold.EndReleased, hold.EndReleased, hold.EndReleased)
	})
}

func TestRunLeavesAReleaseThatHangsWhenSignalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.hold.releases = func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		s.in(time.Second, func() { s.guard.end(6) })
		s.in(1200*ms, func() { s.signals <- syscall.SIGTERM })
		o := s.run()
		s.wants(o, hold.ResultChildExit, 6, 2200*ms, began, hold.EndReleased)
		if o.Released || !strings.Contains(o.Status.Reason, "not released") {
			t.Errorf("outcome %+v", o)
		}
	})
}

// While a machine is suspended its timers stand still and the clock runs on. What became due meanwhile is
// noticed within a nap.
func TestRunLooksAtTheClockAfterASuspend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.guard.answer = func(g *fakeGuard, r guard.Request) {
			if r.Op == guard.OpStart {
				obedient(g, r) // and then not a word more
			}
		}
		var killed time.Duration
		s.guard.killAt = func() { killed = time.Since(s.began) }
		s.in(time.Second, func() { s.hold.lose(hold.ErrLost) })
		s.in(1500*ms, func() { s.skew.Store(int64(time.Hour)) })
		o := s.run()
		if killed > 1500*ms+nap+hearWithin {
			t.Errorf("the guard was killed %v after the start", killed)
		}
		if o.Status.Code != 70 || !o.Released {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestRunBearsChannelsThatAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		close(s.signals)
		s.in(time.Second, func() { close(s.hold.renewed) })
		s.in(2*time.Second, func() { s.guard.end(0) })
		o := s.run()
		s.wants(o, hold.ResultChildExit, 0, 2*time.Second, began+", forget 1f-1", hold.EndReleased)
	})
}

func TestJournalCountsWhatItDrops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := make(chan struct{})
		var got []string
		j := newJournal(slog.New(collect{full, &got}))
		const more = 10
		for i := range journalRoom + 1 + more {
			j.say(line{text: fmt.Sprint(i)})
			if i == 0 {
				synctest.Wait() // the first line is being written
			}
		}
		close(full)
		synctest.Wait()
		j.close()
		if n := len(got); n != journalRoom+2 || got[n-1] != "lines were dropped" {
			t.Errorf("%d lines, the last one %q", n, got[n-1])
		}
		if j.missed != more {
			t.Errorf("missed %d, want %d", j.missed, more)
		}
	})
}

// collect is a log that stands still until its gate opens.
type collect struct {
	gate chan struct{}
	got  *[]string
}

func (c collect) Enabled(context.Context, slog.Level) bool { return true }
func (c collect) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c collect) WithGroup(string) slog.Handler            { return c }
func (c collect) Handle(_ context.Context, r slog.Record) error {
	<-c.gate
	*c.got = append(*c.got, r.Message)
	return nil
}

// Red when the beat comes from anywhere but the loop, or is missed while nothing else happens.
func TestRunBeatsWhileItRunsAndSaysWhenTheChildDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var beats []time.Duration
		started := hold.Instant(-1)
		s.cfg.BeatEvery = 400 * ms
		s.cfg.Beat = func() { beats = append(beats, s.now()) }
		s.cfg.Started = func(int, time.Duration) { started = s.now() }
		s.in(2*time.Second, func() { s.guard.end(0) })
		s.run()
		if started != 100*ms {
			t.Errorf("started at %v", started)
		}
		for i, at := range beats {
			if i > 0 && at-beats[i-1] != 400*ms {
				t.Errorf("beats at %v", beats)
			}
		}
		if len(beats) < 5 {
			t.Errorf("beats at %v in two seconds", beats)
		}
	})
}
