package guard

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
)

// leadersOf starts as many processes as it is told to, each a leader.
func leadersOf(t *testing.T, n int) []*run {
	t.Helper()
	var runs []*run
	for range n {
		cmd := exec.Command("/bin/sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		runs = append(runs, &run{pid: cmd.Process.Pid})
	}
	return runs
}

// killAll makes zombies.
func killAll(t *testing.T, runs []*run) {
	t.Helper()
	for _, r := range runs {
		if err := unix.Kill(r.pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := ignoreEINTR(func() error { return unix.Waitid(unix.P_PID, r.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) }); err != nil {
			t.Fatal(err)
		}
	}
}

// Red when stirred has room for some only, forgets one that was not polled, or names one that goes on.
func TestEveryEndIsSeenAndNoOther(t *testing.T) {
	x := newExits()
	defer x.close()
	runs := leadersOf(t, 20)
	for _, r := range runs {
		x.watch(r)
	}
	if got := x.stirred(runs); len(got) != 0 {
		t.Fatalf("%d of those that go on", len(got))
	}
	killAll(t, runs[5:])
	for range 2 { // whoever was not polled is named again
		got := x.stirred(runs)
		slices.SortFunc(got, func(a, b *run) int { return slices.Index(runs, a) - slices.Index(runs, b) })
		if !slices.Equal(got, runs[5:]) {
			t.Fatalf("%d, want 15", len(got))
		}
	}
	for _, r := range runs[5:] {
		x.unwatch(r)
	}
	if got := x.stirred(runs); len(got) != 0 {
		t.Fatalf("%d that are no longer watched", len(got))
	}
	if len(x.fds) != 5 || len(x.runs) != 5 || len(x.blind) != 0 {
		t.Errorf("%d, %d, %d are kept, want 5", len(x.fds), len(x.runs), len(x.blind))
	}
}

// Red when a leader that could not be watched is not asked.
func TestWithoutDescriptorsEveryLeaderIsAsked(t *testing.T) {
	x := newExits()
	x.close() // no descriptor is one now
	runs := leadersOf(t, 2)
	for _, r := range runs {
		x.watch(r)
	}
	if got := x.stirred(runs); len(got) != 2 {
		t.Errorf("%d, want 2", len(got))
	}
	x.unwatch(runs[0])
	if got := x.stirred(runs); !slices.Equal(got, runs[1:]) {
		t.Errorf("%d, want 1", len(got))
	}
	// A process that is no more cannot be watched either.
	x = newExits()
	defer x.close()
	x.watch(&run{pid: 1 << 30})
	if got := x.stirred(runs); len(got) != 1 {
		t.Errorf("%d, want 1", len(got))
	}
}

// Red when the stop of one is not heard of because nobody ended.
func TestAStopMakesEveryLeaderWorthALook(t *testing.T) {
	x := newExits()
	defer x.close()
	runs := leadersOf(t, 2)
	for _, r := range runs {
		x.watch(r)
	}
	if err := unix.Kill(runs[1].pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := ignoreEINTR(func() error { return unix.Waitid(unix.P_PID, runs[1].pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil) }); err != nil {
		t.Fatal(err)
	}
	if got := x.stirred(runs); !slices.Equal(got, runs) {
		t.Errorf("%d, want 2", len(got))
	}
}

// Red when looks are put off for ever, for a run that is alone, or while something is killed.
func TestALookIsPutOffWhereSeveralRunsEndOnly(t *testing.T) {
	t.Parallel()
	at := hold.Instant(time.Hour)
	l := &loop{config: config{clock: func() hold.Instant { return at }}}
	l.table.runs = []*run{{}, {}}
	if l.soon(everything) != everything || l.lookAt != 0 {
		t.Error("the first one is put off")
	}
	l.looked = at
	at += lookEvery - 1
	if l.soon(everything) != nothing || l.lookAt != at+1 {
		t.Errorf("it is put off until %v", l.lookAt)
	}
	l.table.runs[1].killed = true
	if l.soon(leaders) != leaders {
		t.Error("put off while something is killed")
	}
	l.table.runs = l.table.runs[:1]
	l.table.runs[0].killed = false
	if l.soon(leaders) != leaders {
		t.Error("put off for a run that is alone")
	}
	l.table.runs = []*run{{}, {}}
	at++
	if l.soon(leaders) != leaders {
		t.Error("put off for ever")
	}
}
