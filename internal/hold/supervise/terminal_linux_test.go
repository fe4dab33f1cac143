package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
)

// The terminal is tested in processes of its own: this program again, in one of the roles below, as the
// leader of a session on a pseudo-terminal.
const roleVariable = "SUPERVISE_TEST_ROLE"

// playRole is called by TestMain. It reports whether this process had a role and has played it.
func playRole() bool {
	switch os.Getenv(roleVariable) {
	case "wrapper":
		playWrapper()
	case "background":
		fmt.Println("ours:", openTerminal(true).ours() || IsInterrupt(syscall.SIGINT) || openTerminal(true).interrupted(signalledBy(syscall.SIGINT)))
	case "child":
		playChild()
	default:
		return false
	}
	return true
}

// playChild leaves the terminal as a program that was killed would: without echo.
func playChild() {
	tty := must(os.OpenFile("/dev/tty", os.O_RDWR, 0))
	modes := must(unix.IoctlGetTermios(int(tty.Fd()), getModes))
	modes.Lflag &^= unix.ECHO
	must(0, unix.IoctlSetTermios(int(tty.Fd()), setModes, modes))
}

func playWrapper() {
	term := openTerminal(true)
	fmt.Println("ours:", term.ours())
	tty := must(os.OpenFile("/dev/tty", os.O_RDWR, 0))
	fd := int(tty.Fd())
	show := func(when string) {
		group := must(unix.IoctlGetInt(fd, unix.TIOCGPGRP))
		modes := must(unix.IoctlGetTermios(fd, getModes))
		fmt.Printf("%s: mine %v, echo %v\n", when, group == unix.Getpgrp(), modes.Lflag&unix.ECHO != 0)
	}
	show("before")
	child := again("child")
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: fd}
	must(0, child.Start())
	term.lent()
	must(0, child.Wait())
	show("after the child")
	term.restore()
	term.restore()
	show("restored")
	fmt.Println("interrupted:", term.interrupted(killedBy(syscall.SIGINT)), term.interrupted(killedBy(syscall.SIGTERM)))

	// Another one, which no child gets.
	again := openTerminal(true)
	fmt.Println("interrupted, not given:", again.interrupted(killedBy(syscall.SIGINT)))
	fmt.Println("while waiting:", again.interrupted(signalledBy(syscall.SIGINT)), again.interrupted(signalledBy(syscall.SIGTERM)))
	again.restore()
	fmt.Println("between two runs:", IsInterrupt(syscall.SIGINT), IsInterrupt(syscall.SIGTERM))
}

// killedBy is a run whose child was killed by a signal.
func killedBy(s syscall.Signal) Outcome {
	return Outcome{Status: hold.Status{Outcome: hold.ResultChildSignal, Code: hold.SignalCode(int(s))}}
}

// signalledBy is a run that a signal ended before there was a child.
func signalledBy(s syscall.Signal) Outcome {
	return Outcome{Status: hold.Status{Outcome: hold.ResultSignalled, Code: hold.SignalCode(int(s))}}
}

// must ends a role that cannot go on; the test sees its output.
func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return v
}

func again(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// openPseudoTerminal gives both ends.
func openPseudoTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

func TestTheTerminalComesBackWithItsModes(t *testing.T) {
	t.Parallel()
	_, slave := openPseudoTerminal(t)
	cmd := again("wrapper")
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	out, err := cmd.CombinedOutput()
	want := strings.Join([]string{
		"ours: true", "before: mine true, echo true", "after the child: mine false, echo false", "restored: mine true, echo true",
		"interrupted: true false", "interrupted, not given: false", "while waiting: true false", "between two runs: true false", "",
	}, "\n")
	if err != nil || string(out) != want {
		t.Errorf("%v, it says\n%swant\n%s", err, out, want)
	}
}

func TestWithoutATerminalThereIsNothingToTake(t *testing.T) {
	t.Parallel()
	cmd := again("background")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal at all
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ours: false\n" {
		t.Errorf("%v, it says %s", err, out)
	}
	if term := openTerminal(false); term.ours() {
		t.Error("nobody wanted it")
	}
}

func TestATerminalOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	_, slave := openPseudoTerminal(t)
	// A shell that is in the foreground, and the process under test in a group of its own.
	script := `set -m; "$0" & wait $!`
	cmd := exec.Command("/bin/sh", "-c", script, "/proc/self/exe")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args[len(cmd.Args)-1] = exe
	cmd.Env = append(os.Environ(), roleVariable+"=background")
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(pipe)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if err != nil || string(out) != "ours: false\n" {
		t.Errorf("%v, it says %s", err, out)
	}
}
