package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
)

func TestExitCodesAndSignalsComeBackAsTheyAre(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, code := range []int{0, 1, 3, 64, 70, 75, 126, 127, 255} {
		run := "exit " + strconv.Itoa(code)
		w.send(sh(run, run))
		w.event(KindStarted, run)
		if e := w.event(KindExited, run); e.Code != code || e.Signal != 0 {
			t.Errorf("%s: %+v", run, e)
		}
		w.event(KindGone, run)
	}
	for _, sig := range []int{1, 9, 11, 15} {
		run := fmt.Sprintf("kill -%d $$", sig)
		w.send(sh(run, run))
		w.event(KindStarted, run)
		if e := w.event(KindExited, run); e.Signal != sig || e.Code != 0 {
			t.Errorf("%s: %+v", run, e)
		}
		w.event(KindGone, run)
	}
	w.bye()
}

// Red when look reaps leaders with the orphans: then poll finds nobody to ask.
func TestTwoHundredQuickRunsAllReportTheirOwnCode(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for i := range 200 {
		w.send(sh(strconv.Itoa(i), "exit "+strconv.Itoa(i)))
	}
	for i := range 200 {
		run := strconv.Itoa(i)
		w.event(KindStarted, run)
		if e := w.event(KindExited, run); e.Code != i {
			t.Errorf("run %d: %+v", i, e)
		}
		w.event(KindGone, run)
	}
	w.bye()
}

func TestNothingStartsAtOrPastTheDeadline(t *testing.T) {
	t.Parallel()
	w := begin(t)
	q := sh("1", "echo started")
	q.Deadlines = in(0, time.Hour)
	w.send(q)
	if e := w.event(KindRefused, "1"); e.Code != 0 {
		t.Fatalf("%+v", e)
	}
	if all := w.bye(); len(all) != 0 {
		t.Fatalf("%q", all)
	}
}

// Red when step does not look at Deadlines.Term; the wrapper is awake here and says nothing.
func TestTheDeadlineEndsAChildWithoutAWord(t *testing.T) {
	t.Parallel()
	w := begin(t)
	q := sh("1", `trap "exit 9" TERM; echo up; while :; do sleep 0.01; done`)
	q.Deadlines = in(300*time.Millisecond, time.Hour)
	w.send(q)
	w.event(KindStarted, "1")
	if e := w.event(KindTermSent, "1"); e.Time < q.Deadlines.Term {
		t.Fatalf("%v too early", q.Deadlines.Term-e.Time)
	}
	if e := w.event(KindExited, "1"); e.Code != 9 {
		t.Fatalf("%+v", e)
	}
	w.event(KindGone, "1")
	w.bye()
}

// Red when extend takes the lower value: the child would be told to stop.
func TestDeadlinesOnlyRise(t *testing.T) {
	t.Parallel()
	w := begin(t)
	q := sh("1", `trap "exit 9" TERM; echo up; sleep 0.7; exit 4`)
	q.Deadlines = in(300*time.Millisecond, 310*time.Millisecond)
	w.send(q)
	w.event(KindStarted, "1")
	later, sooner := in(time.Hour, time.Hour), in(0, 0)
	w.send(Request{Op: OpExtend, Run: "1", Deadlines: later})
	w.send(Request{Op: OpExtend, Run: "1", Deadlines: sooner})
	if e := w.event(KindExited, "1"); e.Code != 4 {
		t.Fatalf("%+v", e)
	}
	w.event(KindGone, "1")
	w.bye()
}

// Red when the escalation ends with the direct child (look: !r.exited only), or KILL goes to the leader alone.
func TestAGrandchildThatIgnoresTermIsKilledThoughItsShellObeyed(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.send(sh("1", `sh -c 'trap "" TERM; echo up $$; exec sleep 600' & wait`))
	w.event(KindStarted, "1")
	grandchild := w.until("up")
	w.send(Request{Op: OpStop, Run: "1", KillAt: now() + time.Hour, Reason: "test"})
	if e := w.event(KindTermSent, "1"); e.Reason != "test" {
		t.Fatalf("%+v", e)
	}
	if e := w.event(KindExited, "1"); e.Signal != int(syscall.SIGTERM) {
		t.Fatalf("%+v", e)
	}
	if !exists(grandchild) {
		t.Fatal("the grandchild obeyed: the test tests nothing")
	}
	w.send(Request{Op: OpStop, Run: "1", KillAt: now() + 50*time.Millisecond})
	w.event(KindKillSent, "1")
	w.event(KindGone, "1")
	if exists(grandchild) {
		t.Fatal("gone, and still there")
	}
	w.bye()
}

func TestLeftoversOfANormalExitAreToldThenKilled(t *testing.T) {
	t.Parallel()
	w := begin(t)
	q := sh("polite", `sh -c 'trap "echo obeyed; exit" TERM; echo up; while :; do sleep 0.01; done' & setsid sleep 600 & read x <"$1"; exit 5`)
	q.KillAfter = time.Hour
	gate := fifo(t)
	q.Spec.Argv = append(q.Spec.Argv, gate)
	w.send(q)
	w.event(KindStarted, "polite")
	w.until("up")
	pass(t, gate)
	if e := w.event(KindExited, "polite"); e.Code != 5 {
		t.Fatalf("%+v", e)
	}
	w.event(KindTermSent, "polite")
	w.event(KindGone, "polite")
	w.until("obeyed")

	q = sh("rude", `setsid sh -c 'trap "" TERM; echo up $$; exec sleep 600' & read x <"$1"`)
	q.KillAfter = 50 * time.Millisecond
	gate = fifo(t)
	q.Spec.Argv = append(q.Spec.Argv, gate)
	w.send(q)
	w.event(KindStarted, "rude")
	pid := w.until("up")
	pass(t, gate)
	w.event(KindExited, "rude")
	w.event(KindTermSent, "rude")
	w.event(KindKillSent, "rude")
	w.event(KindGone, "rude")
	if exists(pid) {
		t.Fatal("gone, and still there")
	}
	w.bye()
}

// fifo makes a gate that a child waits at.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pass lets the child at the gate go on.
func pass(t *testing.T, gate string) {
	t.Helper()
	f, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestKillAndSignalReachTheGroup(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.send(sh("1", `trap "echo usr1" USR1; echo up; while :; do sleep 0.01; done`))
	w.event(KindStarted, "1")
	w.until("up")
	w.send(Request{Op: OpSignal, Run: "1", Signal: int(syscall.SIGUSR1)})
	w.until("usr1")
	w.send(Request{Op: OpKill, Run: "1", Reason: "second signal"})
	if e := w.event(KindKillSent, "1"); e.Reason != "second signal" {
		t.Fatalf("%+v", e)
	}
	if e := w.event(KindExited, "1"); e.Signal != int(syscall.SIGKILL) {
		t.Fatalf("%+v", e)
	}
	w.event(KindGone, "1")
	w.bye()
}

func TestAStoppedChildIsContinued(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.send(sh("1", `kill -STOP $$; echo once; kill -TSTP $$; echo twice`))
	w.event(KindStarted, "1")
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP} {
		if e := w.event(KindStopped, "1"); e.Signal != int(sig) {
			t.Fatalf("%+v", e)
		}
	}
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	if all := w.bye(); !slices.Equal(all, []string{"once", "twice"}) {
		t.Fatalf("%q", all)
	}
}

func TestWhatCannotBeStartedIsRefusedWithItsErrno(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := t.TempDir()
	plain, odd := filepath.Join(dir, "plain"), filepath.Join(dir, "odd")
	for path, mode := range map[string]os.FileMode{plain: 0o600, odd: 0o700} {
		if err := os.WriteFile(path, []byte("no program"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, errno := range map[string]syscall.Errno{
		filepath.Join(dir, "none"): syscall.ENOENT,
		plain:                      syscall.EACCES,
		odd:                        syscall.ENOEXEC,
		"with\x00zero":             syscall.EINVAL,
	} {
		w.send(Request{Op: OpStart, Run: path, Spec: &Spec{Path: path, Argv: []string{"x"}}})
		if e := w.event(KindRefused, path); e.Code != int(errno) {
			t.Errorf("%q: %+v, want %v", path, e, errno)
		}
	}
	huge := sh("huge", "exit", strings.Repeat("x", 1<<18))
	w.send(huge)
	if e := w.event(KindRefused, "huge"); e.Code != int(syscall.E2BIG) {
		t.Errorf("%+v", e)
	}
	w.send(Request{Op: OpStart, Run: "empty"})
	if e := w.event(KindRefused, "empty"); e.Code != int(syscall.EINVAL) {
		t.Errorf("%+v", e)
	}
	// Afterwards all is as before.
	w.send(sh("1", "exit 1"))
	w.event(KindStarted, "1")
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	w.bye()
}

// Two runs, each with an orphan that only its environment betrays. Red when ownersOf blames every run for everything,
// or nobody.
func TestTheOrphansOfTwoRunsAreToldApart(t *testing.T) {
	t.Parallel()
	w := begin(t)
	orphans := map[string]string{}
	for _, run := range []string{"a", "b"} {
		w.send(sh(run, `sh -c 'setsid sh -c "echo up \$\$; exec sleep 600" &'; sleep 600`))
		w.event(KindStarted, run)
		orphans[run] = w.until("up")
	}
	w.send(Request{Op: OpKill, Run: "a"})
	w.event(KindKillSent, "a")
	w.event(KindExited, "a")
	w.event(KindGone, "a")
	if exists(orphans["a"]) || !exists(orphans["b"]) {
		t.Fatalf("a's orphan there: %v, b's: %v", exists(orphans["a"]), exists(orphans["b"]))
	}
	w.send(Request{Op: OpKill, Run: "b"})
	w.event(KindKillSent, "b")
	w.event(KindExited, "b")
	w.event(KindGone, "b")
	if exists(orphans["b"]) {
		t.Fatal("gone, and still there")
	}
	w.bye()
}

// A process that replaces itself without end shows, for a moment each time, neither environment nor arguments. It is
// not anybody's for that. Red when an empty environment is believed at first sight.
func TestAProcessInTheMiddleOfAnExecHasNotClearedItsTraces(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script)
	cmd.Env = []string{runVariable + "=it"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	told, untold := 0, 0
	for told < 5000 || untold < 5 {
		switch names, settled := runsOf(cmd.Process.Pid); {
		case slices.Equal(names, []string{"it"}):
			told++
		case settled:
			t.Fatalf("after %d looks it seems to have cleared its environment", told+untold)
		default:
			untold++
		}
	}
}

// Where several runs are alive, who is in the middle of an exec is nobody's: for a while, so that nobody hides in it.
// Red when doubt is enough to be signalled, or when it never ends. A zombie shows as little as an exec does.
func TestWhoCannotBeToldApartYetIsNobodysForAWhile(t *testing.T) {
	cmd := exec.Command("/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	zombie := cmd.Process.Pid
	if err := ignoreEINTR(func() error {
		return unix.Waitid(unix.P_PID, zombie, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}); err != nil {
		t.Fatal(err)
	}
	at := hold.Instant(1)
	k := &kernel{owners: map[int][]*run{}, doubts: map[int]hold.Instant{}}
	k.clock = func() hold.Instant { return at }
	a, b := &run{id: "a", pid: 1 << 30}, &run{id: "b", pid: 1<<30 + 1}
	if got := k.ownersOf(zombie, []*run{a}); !slices.Equal(got, []*run{a}) {
		t.Fatalf("alone: %v", got)
	}
	k.forget(zombie)
	for _, step := range []time.Duration{0, doubtFor / 2, doubtFor/2 - 1} {
		at += step
		if got := k.ownersOf(zombie, []*run{a, b}); got != nil {
			t.Fatalf("after %d ns: %v", at-1, got)
		}
	}
	k.forgetOthers([]int{zombie})
	at++
	if got := k.ownersOf(zombie, []*run{a, b}); !slices.Equal(got, []*run{a, b}) {
		t.Fatalf("in the end: %v", got)
	}
	k.forgetOthers(nil)
	if len(k.owners)+len(k.doubts) > 0 {
		t.Fatalf("%v and %v are kept of the dead", k.owners, k.doubts)
	}
}

// Who has cleared its environment too could be anybody's: it must be gone before any run is.
func TestAnOrphanWithoutTracesHoldsUpEveryRun(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.send(sh("b", "sleep 600"))
	w.event(KindStarted, "b")
	w.send(sh("a", `sh -c 'env -i /usr/bin/setsid /bin/sh -c "echo up \$\$; exec /bin/sleep 600" &'; sleep 600`))
	w.event(KindStarted, "a")
	orphan := w.until("up")
	w.send(Request{Op: OpKill, Run: "a"})
	w.event(KindKillSent, "a")
	w.event(KindExited, "a")
	w.event(KindGone, "a")
	if exists(orphan) {
		t.Fatal("gone, and still there")
	}
	w.send(Request{Op: OpKill, Run: "b"})
	w.event(KindKillSent, "b")
	w.event(KindExited, "b")
	w.event(KindGone, "b")
	w.bye()
}

// Four chains of processes, each in a session of its own and the parent of the next, gone when that is there: a fork
// bomb that cannot explode. Red when a sweep knows only what was there before it.
func TestRunningChainsOfForksAreCaught(t *testing.T) {
	t.Parallel()
	w := begin(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	q := sh("1", `for i in 1 2 3 4; do GUARD_TEST_PART=hop HOPS=300 "$1" & done; wait; sleep 600`, self)
	q.Deadlines = in(300*time.Millisecond, 400*time.Millisecond)
	w.send(q)
	w.event(KindStarted, "1")
	for {
		if e := w.anyEvent("1"); e.Kind == KindGone {
			break
		}
	}
	// bye reads until nobody is left who could write: an escaped chain would go on to its end.
	for _, line := range w.bye() {
		if strings.HasPrefix(line, "the chain") {
			t.Error(line)
		}
	}
}

// exec that waits for a dead file server, here for a lease on the program's file. Red when the loop itself forks: then no
// deadline is kept; or when kill leaves out who is not yet born.
func TestAHangingExecHoldsUpNoDeadline(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.send(Request{Op: OpStart, Run: "other", Deadlines: in(400*time.Millisecond, time.Hour),
		Spec: &Spec{Path: "/bin/sleep", Argv: []string{"sleep", "600"}}})
	w.event(KindStarted, "other")

	w.send(Request{Op: OpStart, Run: "hangs", Deadlines: in(700*time.Millisecond, 800*time.Millisecond),
		Spec: &Spec{Path: leased(t), Argv: []string{"x"}}})
	w.send(sh("queued", "echo never"))
	w.send(Request{Op: OpKill, Run: "queued"})
	w.event(KindKillSent, "queued")
	w.event(KindRefused, "queued")

	w.event(KindTermSent, "other")
	w.event(KindExited, "other")
	w.event(KindGone, "other")
	w.event(KindKillSent, "hangs")
	w.event(KindStarted, "hangs")
	// SIGTERM too, when the loop hears of the fork before it hears of the end.
	e := w.anyEvent("hangs")
	if e.Kind == KindTermSent {
		e = w.anyEvent("hangs")
	}
	if e.Kind != KindExited || e.Signal != int(syscall.SIGKILL) {
		t.Fatalf("%+v", e)
	}
	w.event(KindGone, "hangs")
	if all := w.bye(); len(all) != 0 {
		t.Fatalf("%q", all)
	}
}

// leased makes a program whose exec waits until the lease on it is given back, or for 45 seconds.
func leased(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	return path
}

// Red when a run between its fork and the answer owns nothing: a child that detaches something at once would be called
// gone without it.
func TestARunOwnsItsOrphansBeforeItsForkIsAnswered(t *testing.T) {
	t.Parallel()
	forking, running, queued := &run{id: "f"}, &run{id: "r", pid: 1 << 30}, &run{id: "q"}
	runs := []*run{running, forking, queued}
	k := &kernel{tag: "tag", forking: forking, owners: map[int][]*run{}}
	for env, want := range map[string][]*run{
		"CONCH_RUN=outer.f:tag.f": {forking},
		"CONCH_RUN=tag.r":         {running},
		"CONCH_RUN=other.f":       {running, forking},
		"NONE=":                   {running, forking},
	} {
		cmd := exec.Command("/bin/sleep", "600")
		cmd.Env = []string{env}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for settled := false; !settled; {
			_, settled = runsOf(cmd.Process.Pid)
		}
		if got := k.ownersOf(cmd.Process.Pid, runs); !slices.Equal(got, want) {
			t.Errorf("%s: %v", env, got)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		// The numbers may come back.
		clear(k.owners)
	}
}
