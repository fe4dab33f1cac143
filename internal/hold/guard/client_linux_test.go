package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The loop in the wrapper's own process keeps every promise but those about the wrapper's death.
func TestInTheWrappersProcessRunsEndTheSameWay(t *testing.T) {
	t.Parallel()
	w := begin(t, "IN_PROCESS=1")
	if w.guard != w.cmd.Process.Pid {
		t.Fatal("a process of its own")
	}
	w.send(sh("1", "exit 70"))
	w.event(KindStarted, "1")
	if e := w.event(KindExited, "1"); e.Code != 70 {
		t.Fatalf("%+v", e)
	}
	w.event(KindGone, "1")
	child, grandchild := started(w, sh("2", stubborn))
	w.send(Request{Op: OpStop, Run: "2", KillAt: now()})
	w.event(KindTermSent, "2")
	w.event(KindKillSent, "2")
	w.event(KindExited, "2")
	w.event(KindGone, "2")
	if exists(child) || exists(grandchild) {
		t.Fatal("gone, and still there")
	}
	w.bye()
}

func TestInTheWrappersProcessKillAndSweepLeaveNothing(t *testing.T) {
	t.Parallel()
	w := begin(t, "IN_PROCESS=1")
	child, grandchild := started(w, sh("1", stubborn))
	w.do("kill")
	if err := w.do("sweep"); err != "" {
		t.Fatal(err)
	}
	if exists(child) || exists(grandchild) {
		t.Fatal("swept, and still there")
	}
	w.event(KindLost, "")
	w.bye()
}

// A shell may start something in the background and then replace itself by the wrapper: that is not ours to kill.
// Red when newFamily does not look at who is there already.
func TestChildrenFromBeforeAreLeftAlone(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"", "IN_PROCESS=1"} {
		w := &wrapper{t: t, from: make(chan answer, 4096), log: make(chan string, 65536)}
		w.cmd = exec.Command("/bin/sh", "-c", `sleep 600 >/dev/null 2>&1 & echo before $! >&2; exec "$0"`, self)
		w.cmd.Env = partEnv("GUARD_TEST_PART=wrapper", where)
		w.launch()
		before := w.until("before")
		w.event(KindReady, "")
		started(w, sh("1", stubborn))
		w.send(Request{Op: OpKill, Run: "1"})
		w.event(KindKillSent, "1")
		w.event(KindExited, "1")
		w.event(KindGone, "1")
		started(w, sh("2", stubborn))
		w.do("kill")
		if err := w.do("sweep"); err != "" {
			t.Error(err)
		}
		if !exists(before) {
			t.Error("swept away")
		}
		if pid, err := strconv.Atoi(before); err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
			t.Errorf("%q is no process of ours", before)
		}
		w.bye()
	}
}

func TestAGuardThatCannotServeSaysWhy(t *testing.T) {
	for _, path := range []string{"/nonexistent", ""} {
		o := Options{Path: path}
		if path == "" {
			// It starts, and is no guard: it ends at once.
			o.Path = "/bin/true"
		}
		c, err := Start(o)
		if path != "" {
			if !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		e := <-c.Events()
		if e.Kind != KindLost || e.Reason == "" {
			t.Fatalf("%+v", e)
		}
		if _, open := <-c.Events(); open {
			t.Fatal("an event after the last")
		}
		for c.Send(Request{Op: OpKill}) == nil {
			// The pipe may take some before it notices.
		}
		if err := c.Send(Request{Op: OpKill}); !errors.Is(err, ErrLost) {
			t.Fatal(err)
		}
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Sweep proves nothing about a guard that is alive.
func TestSweepWaitsForTheGuardsEnd(t *testing.T) {
	c, err := Start(Options{Env: partEnv()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Sweep(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestTheRolesAreRecognised(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"holdguard serve-3":         true,
		"/opt/x/holdguard serve-3":  true,
		"holdguard serve-3 release": true,
		"holdguard":                 false,
		"holdguard serve-2":         false,
		"conch serve-3":             false,
	} {
		if IsRole(strings.Fields(args)) != want {
			t.Errorf("%q is not %v", args, want)
		}
	}
	for args, want := range map[string][2]bool{
		"holdrelease":       {true, false},
		"holdrelease close": {true, true},
		"conch close":       {false, false},
		"":                  {false, false},
	} {
		release, closing := IsRelease(strings.Fields(args))
		if [2]bool{release, closing} != want {
			t.Errorf("%q: %v %v", args, release, closing)
		}
	}
}

func TestTheGuardProgramIsFoundBesideOrInLibexec(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	bin, libexec := filepath.Join(root, "bin"), filepath.Join(root, "libexec", "conch")
	for _, dir := range []string{bin, libexec} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put := func(path string, mode os.FileMode) string {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	exe := put(filepath.Join(bin, "conch"), 0o700)
	link := filepath.Join(root, "elect")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		for _, from := range []string{exe, link} {
			if got := Locate(from); got != want {
				t.Errorf("from %s: %q, want %q", from, got, want)
			}
		}
	}
	check("")
	put(filepath.Join(bin, Name), 0o600) // not executable
	check("")
	inLibexec := put(filepath.Join(libexec, Name), 0o700)
	check(inLibexec)
	if err := os.Chmod(filepath.Join(bin, Name), 0o700); err != nil {
		t.Fatal(err)
	}
	check(filepath.Join(bin, Name))
}

// A guard without descriptors left cannot have timers: it says so and serves nothing.
func TestAGuardWithoutDescriptorsRefusesToServe(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	// How many the Go runtime itself needs is its business: the first limit that is too low is ours.
	path := filepath.Join(dir, "limited")
	for limit := 20; ; limit-- {
		script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", limit, filepath.Join(dir, Name))
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		w := &wrapper{t: t, from: make(chan answer, 4096), log: make(chan string, 65536)}
		w.cmd = exec.Command(self)
		w.cmd.Env = partEnv("GUARD_TEST_PART=wrapper", "GUARD_PATH="+path)
		w.launch()
		e := w.anyEvent("")
		w.bye()
		if e.Kind == KindReady {
			continue
		}
		if e.Kind != KindLost || !strings.Contains(e.Reason, "too many open files") {
			t.Fatalf("%+v", e)
		}
		return
	}
}

// A wrapper that is the first process of a container gets orphans that were never its guard's. Red when Reap takes the
// guard's own end from whoever waits for it.
func TestReapTakesWhatCameFromElsewhere(t *testing.T) {
	t.Parallel()
	w := begin(t)
	// Somebody comes to the wrapper that its guard knows nothing of, and has ended.
	w.do("stray")
	for pid := w.until("stray"); exists(pid); {
		w.do("reap")
	}
	w.send(sh("1", "exit 1"))
	w.event(KindStarted, "1")
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	if err := syscall.Kill(w.guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.do("reap")
	if e := w.event(KindLost, ""); e.Reason != "signal: killed" {
		t.Fatalf("%+v", e)
	}
	w.bye()
}
