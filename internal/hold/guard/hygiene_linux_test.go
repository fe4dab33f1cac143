package guard

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Red when Main does not start with closeOnExec: the pipes, the settings and the wrapper's stray descriptor come out.
func TestAChildSeesItsThreeDescriptorsOnly(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t))
	w.send(sh("1", `ls /proc/$$/fd; echo end`))
	w.event(KindStarted, "1")
	var fds []string
	for line := w.line(); line != "end"; line = w.line() {
		fds = append(fds, line)
	}
	if !slices.Equal(fds, []string{"0", "1", "2"}) {
		t.Fatalf("%q", fds)
	}
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	w.bye()
}

// Red when outlive ignores signals instead of catching them: SigIgn is inherited.
func TestAChildHasCleanSignals(t *testing.T) {
	t.Parallel()
	w := begin(t)
	checkSignals(t, w, "0000000000000000")
}

// Red when outlive catches a HUP that was ignored: under nohup the child would die of it.
func TestAChildUnderNohupIgnoresHangups(t *testing.T) {
	t.Parallel()
	w := &wrapper{t: t, from: make(chan answer, 4096), log: make(chan string, 65536)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.Command("/bin/sh", "-c", `trap "" HUP; exec "$0"`, self)
	w.cmd.Env = partEnv("GUARD_TEST_PART=wrapper")
	w.launch()
	w.event(KindReady, "")
	checkSignals(t, w, "0000000000000001")
}

// ownSignals is a mask without the two signals that a C library keeps for itself and whose disposition a test
// inherits from whoever started it.
func ownSignals(t *testing.T, mask string) string {
	t.Helper()
	n, err := strconv.ParseUint(mask, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	const libc = 1<<(32-1) | 1<<(33-1)
	return fmt.Sprintf("%016x", n&^libc)
}

func checkSignals(t *testing.T, w *wrapper, ignored string) {
	t.Helper()
	w.send(Request{Op: OpStart, Run: "1", Spec: &Spec{Path: "/bin/cat", Argv: []string{"cat", "/proc/self/status"}}})
	w.event(KindStarted, "1")
	if got := w.until("SigBlk:"); got != "0000000000000000" {
		t.Errorf("blocked %s", got)
	}
	if got := ownSignals(t, w.until("SigIgn:")); got != ignored {
		t.Errorf("ignored %s, want %s", got, ignored)
	}
	if got := w.until("SigCgt:"); got != "0000000000000000" {
		t.Errorf("caught %s", got)
	}
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	w.bye()
}

// Red when Spec goes over the pipe as JSON strings: bytes that are no UTF-8 change.
func TestArgumentsAndVariablesArriveByteForByte(t *testing.T) {
	t.Parallel()
	w := begin(t)
	args := []string{"a b", "", "$HOME", "it's", "<&>", "\xff\xfe", "日本", "tab\there"}
	q := sh("1", `printf '[%s]' "$@"; printf '{%s}' "$ODD"; pwd`, args...)
	q.Spec.Env = append(q.Spec.Env, "ODD=\x80x", "CONCH_RUN=outer")
	q.Spec.Dir = "/proc"
	w.send(q)
	w.event(KindStarted, "1")
	want := "[" + strings.Join(args, "][") + "]{\x80x}/proc"
	if got := w.line(); got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	w.event(KindExited, "1")
	w.event(KindGone, "1")
	w.bye()
}

// pkill -9 -f conch, or elect, must spare the guard; and secrets are neither in its arguments nor its environment.
func TestTheGuardShowsNeitherTheToolsNameNorSecrets(t *testing.T) {
	t.Parallel()
	w := begin(t, releasing(t), "SECRET=s3cret", "CONCH_RUN=outer")
	proc := "/proc/" + strconv.Itoa(w.guard) + "/"
	read := func(name string) string {
		data, err := os.ReadFile(proc + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := read("comm"); got != Name+"\n" {
		t.Errorf("name %q", got)
	}
	if got := read("cmdline"); got != "holdguard\x00serve-3\x00release\x00" {
		t.Errorf("arguments %q", got)
	}
	env := read("environ")
	if strings.Contains(env, "s3cret") || !strings.Contains(env, "CONCH_RUN=outer") {
		t.Errorf("environment %q", env)
	}
	group, err := unix.Getpgid(w.guard)
	if err != nil || group != w.guard {
		t.Errorf("group %d, %v", group, err)
	}
	if sid, _ := unix.Getsid(w.guard); sid == w.guard {
		t.Error("a session of its own: it could not give the terminal to a child")
	}
	w.bye()
}

// A child in the background of its terminal would be stopped by reading it. Red when Foreground is not passed on, or the
// guard has a session of its own.
func TestOnATerminalTheChildIsInTheForeground(t *testing.T) {
	t.Parallel()
	master, slave := terminal(t)
	ordersR, ordersW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w := &wrapper{t: t, from: make(chan answer, 4096), log: make(chan string, 65536), orders: ordersW}
	w.cmd = exec.Command("/proc/self/exe")
	w.cmd.Env = partEnv("GUARD_TEST_PART=wrapper", "ORDERS=3")
	w.cmd.Stdin = slave
	w.cmd.ExtraFiles = []*os.File{ordersR}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	w.launch()
	w.event(KindReady, "")
	q := sh("1", `read x; echo "got $x"`)
	q.Spec.Foreground = true
	w.send(q)
	w.event(KindStarted, "1")
	if _, err := master.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := w.until("got"); got != "hello" {
		t.Fatalf("%q", got)
	}
	w.event(KindExited, "1")
	w.event(KindGone, "1")

	// The wrapper did not take the terminal back: what comes now is in the background, and says so.
	w.send(sh("2", `read x; echo "got $x"`))
	w.event(KindStarted, "2")
	if e := w.event(KindStopped, "2"); e.Signal != int(syscall.SIGTTIN) || e.Reason == "" {
		t.Fatalf("%+v", e)
	}
	w.send(Request{Op: OpKill, Run: "2"})
	w.event(KindKillSent, "2")
	w.event(KindExited, "2")
	w.event(KindGone, "2")
	w.bye()
	_ = ordersR.Close()
	_ = ordersW.Close()
}

// terminal makes a pseudo-terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	var locked, number int32
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), unix.TIOCSPTLCK, uintptr(unsafe.Pointer(&locked))); e != 0 {
		t.Fatal(e)
	}
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), unix.TIOCGPTN, uintptr(unsafe.Pointer(&number))); e != 0 {
		t.Fatal(e)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}
