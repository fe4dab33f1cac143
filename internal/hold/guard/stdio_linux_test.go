package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pathOf is where a guard finds a file that this test has open.
func pathOf(t *testing.T, f *os.File) string {
	t.Helper()
	path, err := Path(f)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// input is a file without a name, with its offset at the end, as it is when it has just been written.
func input(t *testing.T, text string) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("input", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "input")
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return f
}

// output is a pipe: the path of its end for a child, and a way to read it to its end once the run was started.
func output(t *testing.T) (path string, read func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return pathOf(t, w), func() string {
		t.Helper()
		_ = w.Close()
		if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%v after %q", err, all)
		}
		return string(all)
	}
}

// Red when the guard keeps what it opened: then no pipe ends. Red when a run gets the files of another, or more than three.
func TestRunsAtOnceEachHaveFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "IN_PROCESS=1"} {
		w := begin(t, where)
		const runs = 20
		gate := fifo(t)
		open, err := os.OpenFile(gate, os.O_RDWR, 0)
		w.must(err)
		reads := make([][2]func() string, runs)
		for i := range runs {
			q := sh(fmt.Sprint(i), `cat; exec 3<"$1"; read x <&3; exec 3<&-; exec >&2; ls /proc/$$/fd; :`, gate)
			q.Spec.Stdin = pathOf(t, input(t, fmt.Sprint("input ", i)))
			q.Spec.Stdout, reads[i][0] = output(t)
			q.Spec.Stderr, reads[i][1] = output(t)
			w.send(q)
		}
		for i := range runs {
			w.event(KindStarted, fmt.Sprint(i))
		}
		_, err = open.WriteString(strings.Repeat("\n", runs))
		w.must(err)
		for i := range runs {
			if got, want := reads[i][0](), fmt.Sprint("input ", i); got != want {
				t.Errorf("%s run %d wrote %q", where, i, got)
			}
			// Within the wrapper's process, what that inherited comes out as well.
			if got := reads[i][1](); got != "0\n1\n2\n" && where == "" {
				t.Errorf("%s run %d has descriptors %q", where, i, got)
			}
			w.event(KindExited, fmt.Sprint(i))
			w.event(KindGone, fmt.Sprint(i))
		}
		if all := w.bye(); len(all) != 0 {
			t.Errorf("on the guard's own: %q", all)
		}
		w.must(open.Close())
	}
}

// Red when O_NONBLOCK is left on: a child that writes faster than somebody reads would fail. Red without O_APPEND: two
// that write to one file would overwrite each other.
func TestAChildsFilesWaitAndAppend(t *testing.T) {
	t.Parallel()
	w := begin(t)
	q := sh("1", `for i in 0 1 2; do grep flags: /proc/$$/fdinfo/$i; done`)
	q.Spec.Stdin = pathOf(t, input(t, ""))
	var read, none func() string
	q.Spec.Stdout, read = output(t)
	q.Spec.Stderr, none = output(t)
	w.send(q)
	w.event(KindStarted, "1")
	var modes []int
	for line := range strings.Lines(read()) {
		var flags int
		if _, err := fmt.Sscanf(line, "flags: %o", &flags); err != nil {
			t.Fatal(err, line)
		}
		modes = append(modes, flags&(unix.O_ACCMODE|unix.O_NONBLOCK|unix.O_APPEND))
	}
	if want := []int{unix.O_RDONLY, unix.O_WRONLY | unix.O_APPEND, unix.O_WRONLY | unix.O_APPEND}; !slices.Equal(modes, want) {
		t.Errorf("modes %#o, want %#o", modes, want)
	}
	if got := none(); got != "" {
		t.Error(got)
	}
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	w.bye()
}

// Red when open waits: the pipe has no reader, and the run after it would never start.
func TestAFileThatCannotBeOpenedRefusesTheRun(t *testing.T) {
	t.Parallel()
	w := begin(t)
	none := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		spec  Spec
		errno syscall.Errno
		says  string
	}{
		{Spec{Stdin: none}, syscall.ENOENT, "open stdin: "},
		{Spec{Stdin: pathOf(t, input(t, "")), Stdout: fifo(t)}, syscall.ENXIO, "open stdout: "},
		{Spec{Stderr: t.TempDir()}, syscall.EISDIR, "open stderr: "},
	} {
		q := sh(tt.says, "echo never")
		q.Spec.Stdin, q.Spec.Stdout, q.Spec.Stderr = tt.spec.Stdin, tt.spec.Stdout, tt.spec.Stderr
		w.send(q)
		if e := w.event(KindRefused, tt.says); e.Code != int(tt.errno) || !strings.HasPrefix(e.Reason, tt.says) {
			t.Errorf("%+v, want %v", e, tt.errno)
		}
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was created: %v", err)
	}
	w.send(sh("1", "exit 1"))
	w.event(KindStarted, "1")
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	if all := w.bye(); len(all) != 0 {
		t.Error(all)
	}
}

func TestAClosedFileHasNoPath(t *testing.T) {
	t.Parallel()
	f := input(t, "")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if path, err := Path(f); err == nil {
		t.Errorf("%q", path)
	}
	if path, err := Path(nil); err == nil {
		t.Errorf("%q", path)
	}
}

// other is a user and a group that nothing else here is, with a further group.
var other = Credential{UID: 64001, GID: 64002, Groups: []uint32{64003, 64004}}

// Red when Credential is not passed on. Who is not root may not do so: then the run is refused, and never runs as root.
func TestARunIsSomebodyElse(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "IN_PROCESS=1"} {
		w := begin(t, where)
		q := sh("1", `grep -E '^(Uid|Gid|Groups):' /proc/self/status | tr -s '\t ' ' '`)
		q.Spec.Credential = &other
		var read func() string
		q.Spec.Stdout, read = output(t)
		w.send(q)
		if os.Geteuid() != 0 {
			if e := w.event(KindRefused, "1"); e.Code != int(syscall.EPERM) {
				t.Errorf("%+v", e)
			}
			w.bye()
			continue
		}
		w.event(KindStarted, "1")
		want := "Uid: 64001 64001 64001 64001\nGid: 64002 64002 64002 64002\nGroups: 64003 64004 \n"
		if got := read(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		w.event(KindExited, "1")
		w.event(KindGone, "1")

		// The next one is the guard's own again, and a group that was not asked for is nobody's.
		q = sh("2", `exec grep Uid: /proc/self/status`)
		w.send(q)
		w.event(KindStarted, "2")
		if got := strings.Fields(w.until("Uid:")); got[0] != "0" {
			t.Errorf("%q", got)
		}
		w.event(KindExited, "2")
		w.event(KindGone, "2")
		w.bye()
	}
}

// Somebody else's processes end like one's own: by their guard, with it, and by the sweep.
func TestWhoIsSomebodyElseEndsLikeAnybody(t *testing.T) {
	t.Parallel()
	w := begin(t)
	as := func(run string) Request {
		q := sh(run, stubborn)
		if os.Geteuid() == 0 {
			q.Spec.Credential = &other
		}
		return q
	}
	child, grandchild := started(w, as("1"))
	w.send(Request{Op: OpKill, Run: "1"})
	w.event(KindKillSent, "1")
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	if exists(child) || exists(grandchild) {
		t.Error("gone, and still there")
	}
	child, grandchild = started(w, as("2"))
	w.must(syscall.Kill(w.guard, syscall.SIGKILL))
	w.event(KindLost, "")
	if err := w.do("sweep"); err != "" {
		t.Fatal(err)
	}
	if exists(child) || exists(grandchild) {
		t.Error("swept, and still there")
	}
	w.bye()
}

// Red when the umask stays, or is the whole process's.
func TestAnUmaskIsOneRunsOnly(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "IN_PROCESS=1"} {
		w := begin(t, where)
		before := umasks(t, w.guard)
		for _, mask := range []int{0o027, 0o777, 0} {
			q := sh("with", "umask; read x <\"$1\"", fifo(t))
			q.Spec.Umask = &mask
			w.send(q)
			w.event(KindStarted, "with")
			if got, want := w.line(), fmt.Sprintf("%04o", mask); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if got := umasks(t, w.guard); !slices.Equal(got, before) {
				t.Errorf("the guard's is %q, was %q", got, before)
			}
			w.send(sh("without", "umask"))
			w.event(KindStarted, "without")
			if got := w.line(); got != before[0] {
				t.Errorf("%q, want %q", got, before[0])
			}
			w.event(KindExited, "without")
			w.event(KindGone, "without")
			w.send(Request{Op: OpKill, Run: "with"})
			w.event(KindKillSent, "with")
			w.event(KindExited, "with")
			w.event(KindGone, "with")
		}
		for _, mask := range []int{-1, 0o1000} {
			q := sh("odd", "echo never")
			q.Spec.Umask = &mask
			w.send(q)
			if e := w.event(KindRefused, "odd"); e.Code != int(syscall.EINVAL) {
				t.Errorf("%+v", e)
			}
		}
		w.bye()
	}
}

// Red when the thread that forks shares its umask with the others: seen while an exec hangs.
func TestDuringAForkTheUmaskIsOneThreadsOnly(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "IN_PROCESS=1"} {
		w := begin(t, where)
		before := umasks(t, w.guard)
		mask := 0o123
		w.send(Request{Op: OpStart, Run: "1", Spec: &Spec{Path: leased(t), Argv: []string{"x"}, Umask: &mask}})
		for late := time.Now().Add(patience); !slices.Contains(umasks(t, w.guard), "0123"); {
			if time.Now().After(late) {
				t.Fatal("no thread has it")
			}
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.guard))
		w.must(err)
		if !strings.Contains(string(status), "Umask:\t"+before[0]) {
			t.Errorf("%s the process has it:\n%s", where, status)
		}
		w.send(Request{Op: OpKill, Run: "1"})
		for w.anyEvent("1").Kind != KindGone {
		}
		if got := umasks(t, w.guard); !slices.Equal(got, before) {
			t.Errorf("%s afterwards it is %q, was %q", where, got, before)
		}
		w.bye()
	}
}

// umasks are those of a process's threads, each once.
func umasks(t *testing.T, pid int) []string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		data, _ := os.ReadFile(file) // threads come and go
		if _, rest, ok := strings.Cut(string(data), "Umask:\t"); ok {
			all = append(all, rest[:4])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Red when one run is told what another used, or what waitid counted is not asked for.
func TestAnExitTellsWhatWasUsed(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "IN_PROCESS=1"} {
		w := begin(t, where)
		w.send(sh("small", `sleep 600`))
		w.event(KindStarted, "small")
		w.send(Request{Op: OpStart, Run: "large", Spec: &Spec{
			Path: dd(t), Argv: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=256M", "count=2"},
		}})
		w.event(KindStarted, "large")
		if e := w.event(KindExited, "large"); e.Usage.MaxRSS < 256<<20 || e.Usage.MaxRSS > 512<<20 || e.Usage.User+e.Usage.Sys <= 0 {
			t.Errorf("%s %+v", where, e)
		}
		w.event(KindGone, "large")
		w.send(Request{Op: OpKill, Run: "small"})
		w.event(KindKillSent, "small")
		if e := w.event(KindExited, "small"); e.Usage.MaxRSS <= 0 || e.Usage.MaxRSS >= 256<<20 {
			t.Errorf("%s %+v", where, e)
		}
		w.event(KindGone, "small")
		w.bye()
	}
}

// dd finds a program that takes as much memory as it is told to.
func dd(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("dd")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
