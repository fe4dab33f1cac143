package guard

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubborn ignores SIGTERM, has a grandchild in a session of its own that does too, and both write without end. It
// says "up" and the pids when both are there.
const stubborn = `
trap "" TERM
setsid sh -c 'trap "" TERM; echo "grandchild $$"; while :; do echo g; sleep 0.01; done' &
echo "child $$"
while :; do echo c; sleep 0.01; done`

// started starts stubborn and waits until both are there.
func started(w *wrapper, q Request) (child, grandchild string) {
	w.t.Helper()
	w.send(q)
	w.event(KindStarted, q.Run)
	for child == "" || grandchild == "" {
		switch f := strings.Fields(w.line()); {
		case f[0] == "child":
			child = f[1]
		case f[0] == "grandchild":
			grandchild = f[1]
		}
	}
	return child, grandchild
}

// releasing are the settings of a wrapper that hands over the test binary as release program.
func releasing(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "RELEASE=" + path
}

// Red when lost kills nothing, or kernel.kill leaves out the orphans. That the release waits for the proof is what
// TestATestamentWaitsForTheHooksOfItsRunAndForStrangers turns red by.
func TestAKilledWrapperLeavesNothingAndOnlyThenReleases(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t), "SECRET=s3cret")
	q := sh("7", stubborn)
	q.Testament = []byte(`{"key":"k"}`)
	started(w, q)

	w.signal(syscall.SIGKILL)

	// The log ends when everybody who could write is gone: whatever is last is last.
	all := w.rest()
	if last := all[len(all)-1]; last != `released {"key":"k"} s3cret` {
		t.Fatalf("the last word is %q", last)
	}
	if n := len(slices.DeleteFunc(all, func(s string) bool { return s == "c" || s == "g" })); n != 1 {
		t.Fatalf("%d lines besides those of the children", n)
	}
}

func TestAKilledWrapperWithoutAChildReleasesToo(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t))
	w.send(Request{Op: OpBequeath, Run: "1", Testament: []byte("old")})
	w.send(Request{Op: OpBequeath, Run: "1", Testament: []byte("new")})
	w.send(Request{Op: OpBequeath, Run: "2", Testament: []byte("dropped")})
	w.send(Request{Op: OpForget, Run: "2"})
	// The guard answers in order: when this is refused, it has heard the rest.
	w.send(Request{Op: OpStart, Run: "x"})
	w.event(KindRefused, "x")

	w.signal(syscall.SIGKILL)

	if all := w.rest(); !slices.Equal(all, []string{"released new"}) && !slices.Equal(all, []string{"released new "}) {
		t.Fatalf("%q", all)
	}
}

func TestAFailedReleaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	failing := filepath.Join(t.TempDir(), "failing")
	if err := os.WriteFile(failing, []byte("xx"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := begin(t, releasing(t), "FAILING="+failing)
	w.send(Request{Op: OpBequeath, Run: "1", Testament: []byte("t")})
	w.send(Request{Op: OpStart, Run: "x"})
	w.event(KindRefused, "x")

	w.signal(syscall.SIGKILL)

	if all := w.rest(); !slices.Equal(all, []string{"failing t", "failing t", "released t "}) {
		t.Fatalf("%q", all)
	}
}

// Red when executeOnce uses a path instead of the descriptor, or Main leaves the descriptor below the list of files.
func TestTheReleaseProgramIsTheOneHandedOverWhateverIsOnDisk(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, self, 0o700); err != nil {
		t.Fatal(err)
	}
	w := begin(t, "RELEASE="+path)
	w.send(Request{Op: OpBequeath, Run: "1", Testament: []byte("t")})
	w.send(Request{Op: OpStart, Run: "x"})
	w.event(KindRefused, "x")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho another program >&2\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	w.signal(syscall.SIGKILL)

	if all := w.rest(); !slices.Equal(all, []string{"released t "}) {
		t.Fatalf("%q", all)
	}
}

// Red when stepTerm or stepKill waits for the wrapper, or watchFrozen is left out.
func TestAFrozenWrapperDoesNotKeepItsChildPastTheDeadline(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t))
	q := sh("1", stubborn)
	q.Testament = []byte("t")
	q.Deadlines = in(time.Second, 1500*time.Millisecond)
	child, grandchild := started(w, q)

	w.signal(syscall.SIGSTOP)
	w.until("closed t")

	if exists(child) || exists(grandchild) {
		t.Fatal("the record was closed while something was alive")
	}
	// The wrapper wakes up and finds everything told in order; the key is its own to release.
	w.signal(syscall.SIGCONT)
	w.event(KindTermSent, "1")
	w.event(KindKillSent, "1")
	if e := w.event(KindExited, "1"); e.Signal != int(syscall.SIGKILL) {
		t.Fatalf("%+v", e)
	}
	w.event(KindGone, "1")
	w.send(Request{Op: OpForget, Run: "1"})
	if all := w.bye(); len(all) != 0 {
		t.Fatalf("said after the good-bye: %q", all)
	}
}

func TestAFrozenWrapperThatIsKilledThenIsReleasedInFull(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t))
	q := sh("1", stubborn)
	q.Testament = []byte("t")
	q.Deadlines = in(500*time.Millisecond, 600*time.Millisecond)
	started(w, q)
	w.signal(syscall.SIGSTOP)
	w.until("closed t")

	w.signal(syscall.SIGKILL)

	if all := w.rest(); !slices.Equal(all, []string{"released t "}) {
		t.Fatalf("%q", all)
	}
}

// Red without Pdeathsig and adopt (who is left is init's), or when sweepAll stops at its first round.
func TestAKilledGuardLeavesNothingToTheSweep(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t))
	q := sh("1", stubborn)
	q.Testament = []byte("t")
	child, grandchild := started(w, q)

	w.do("kill")
	if e := w.event(KindLost, ""); e.Reason != "signal: killed" {
		t.Fatalf("%+v", e)
	}
	if err := w.do("sweep"); err != "" {
		t.Fatal(err)
	}

	if exists(child) || exists(grandchild) {
		t.Fatal("swept, and still there")
	}
	for _, line := range w.bye() {
		if line != "c" && line != "g" {
			t.Fatalf("%q", line)
		}
	}
}

// A guard that is stopped cannot even say that it is: the wrapper kills it.
func TestAStoppedGuardIsKilledAndSwept(t *testing.T) {
	t.Parallel()
	w := begin(t)
	child, grandchild := started(w, sh("1", stubborn))
	if err := syscall.Kill(w.guard, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	// Sending does not wait for it either.
	w.send(Request{Op: OpExtend, Run: "1"})
	w.do("kill")
	if err := w.do("sweep"); err != "" {
		t.Fatal(err)
	}

	if exists(child) || exists(grandchild) {
		t.Fatal("swept, and still there")
	}
	w.bye()
}

// Red when outlive is left out. SIGKILL and SIGSTOP are the only ways to disturb a guard.
func TestTheGuardOutlivesWhatEndsItsWrapper(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE} {
		if err := syscall.Kill(w.guard, sig); err != nil {
			t.Fatal(err)
		}
	}
	w.send(sh("1", "exit 3"))
	w.event(KindStarted, "1")
	if e := w.event(KindExited, "1"); e.Code != 3 {
		t.Fatalf("%+v", e)
	}
	w.event(KindGone, "1")
	w.bye()
}

func TestGoodByeKillsWhatStillRunsAndReleasesNothing(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t))
	q := sh("1", stubborn)
	q.Testament = []byte("t")
	started(w, q)
	for _, line := range w.bye() {
		if line != "c" && line != "g" {
			t.Fatalf("%q", line)
		}
	}
}

// Red without Pdeathsig, or when the starter's thread ends before its guard (then the child dies at once). Here nobody
// sweeps: the wrapper might be frozen too.
func TestTheDirectChildDiesWithItsGuard(t *testing.T) {
	t.Parallel()
	w := begin(t)
	gate := fifo(t)
	w.send(sh("1", `exec 9>"$1"; echo up >&9; exec sleep 600`, gate))
	w.event(KindStarted, "1")
	f, err := os.Open(gate)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	up := make([]byte, 3)
	if _, err := io.ReadFull(f, up); err != nil || string(up) != "up\n" {
		t.Fatalf("%q, %v", up, err)
	}
	if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(w.guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The child alone has the other end: it ends with the child.
	if rest, err := io.ReadAll(f); err != nil || len(rest) != 0 {
		t.Fatalf("%q, %v", rest, err)
	}
	w.event(KindLost, "")
	w.bye()
}

// Red when start does not ask whether the wrapper still lives: a start may lie in the pipe of a wrapper that is dead.
func TestNothingStartsForADeadWrapper(t *testing.T) {
	t.Parallel()
	dead := make(chan struct{})
	close(dead)
	k := &kernel{config: config{clock: now, stdio: Options{}.stdio()}}
	j := job{id: "1", spec: sh("1", "exit 1").Spec}
	if got := k.start(j, dead); got.pid != 0 || got.errno != 0 || got.why != "the wrapper is gone" {
		t.Fatalf("%+v", got)
	}
}

// Red when start does not look at the clock itself: the guard may have been stopped since the request was heard.
func TestTheClockIsJudgedRightBeforeTheFork(t *testing.T) {
	t.Parallel()
	k := &kernel{config: config{clock: now, stdio: Options{}.stdio()}}
	j := job{id: "1", spec: sh("1", "exit 1").Spec, term: now()}
	if got := k.start(j, nil); got.pid != 0 || got.errno != 0 || got.why != tooLate {
		t.Fatalf("%+v", got)
	}
}
