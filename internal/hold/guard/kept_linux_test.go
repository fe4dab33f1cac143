package guard

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// lockable is a file that a wrapper locks and has kept; locked asks whether anybody has the lock, await waits until
// nobody has.
type lockable struct {
	t    *testing.T
	file *os.File
}

func newLockable(t *testing.T) lockable {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return lockable{t, file}
}

func (l lockable) setting() string { return "KEPT=" + l.file.Name() }

func (l lockable) locked() bool {
	l.t.Helper()
	err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		l.t.Fatal(err)
	}
	return err != nil
}

func (l lockable) await() {
	l.t.Helper()
	if err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX); err != nil {
		l.t.Fatal(err)
	}
}

// open reports whether a process has the file open.
func (l lockable) open(pid int) bool {
	l.t.Helper()
	fds, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.ContainsFunc(fds, func(fd string) bool {
		at, err := os.Readlink(fd)
		return err == nil && at == l.file.Name()
	})
}

// Red when spawn hands nothing over, or Main does not take it: then the lock is free as soon as the wrapper is dead.
func TestAKeptFileIsKeptUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	lock := newLockable(t)
	w := begin(t, lock.setting(), releasing(t))
	// These have closed their own: only wrapper and guard keep it.
	child, grandchild := started(w, sh("1", "exec 3<&-\n"+stubborn))

	if !lock.open(w.guard) {
		t.Error("the guard has not got it")
	}
	w.signal(syscall.SIGKILL)
	lock.await()
	if exists(child) || exists(grandchild) {
		t.Error("free, and something is left")
	}
}

// Red when start does not pass it on: where wrapper and guard die together, what is left is all that can keep it.
func TestWhatOutlivesWrapperAndGuardKeepsAKeptFile(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "IN_PROCESS=1"} {
		lock := newLockable(t)
		w := begin(t, lock.setting(), where)
		child, grandchild := started(w, sh("1", stubborn))
		for _, pid := range []string{child, grandchild} {
			if at, err := os.Readlink("/proc/" + pid + "/fd/" + strconv.Itoa(KeptFD)); at != lock.file.Name() {
				t.Errorf("%q: the descriptor is %q, %v", where, at, err)
			}
		}
		// The guard first: this wrapper does nothing by itself.
		w.must(syscall.Kill(w.guard, syscall.SIGKILL))
		w.signal(syscall.SIGKILL)
		_ = w.cmd.Wait()

		if !exists(grandchild) || !lock.locked() {
			t.Errorf("%q: free, and the grandchild is there: %v", where, exists(grandchild))
		}
		pid, err := strconv.Atoi(grandchild)
		w.must(err)
		w.must(syscall.Kill(pid, syscall.SIGKILL))
		lock.await()
	}
}

// Red when the wrapper's own part is unlocked instead of closed, or the guard stays behind.
func TestAKeptFileIsFreeWhenTheGuardHasLeft(t *testing.T) {
	t.Parallel()
	lock := newLockable(t)
	w := begin(t, lock.setting())
	w.send(sh("1", "exit 3"))
	w.event(KindStarted, "1")
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	if !lock.locked() {
		t.Error("free while the wrapper lives")
	}
	w.bye()
	lock.await()
}
