package faults

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/netns"
	"github.com/go-coord/coord/test/run"
)

// childRole, as first argument, makes the test binary the child of a wrapper.
const childRole = "act-as-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == childRole {
		os.Exit(child(os.Args[2], os.Args[3]))
	}
	if code, ok := etcdtest.Role(); ok {
		os.Exit(code)
	}
	run.Unignore()
	_ = os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin") // ip and nft are there, and not everybody looks there
	code := m.Run()
	etcdtest.CloseShared()
	run.Cleanup()
	os.Exit(code)
}

// child writes what it does to path: "start PID TIME REV", "term PID TIME", "overlap PID TIME", under a semaphore with its
// slot behind that. The mode says when it ends: "meek" at SIGTERM, "patient" with its stdin as well, "brief" by itself as
// well and a tenth of a second late, "stubborn" never, and it has a grandchild in a session of its own that does not either.
func child(path, mode string) int {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 3
	}
	say := func(what string) {
		fmt.Fprintf(log, "%s %d %d %s %s\n", what, os.Getpid(), int64(coord.Now()), os.Getenv("CONCH_REV"), slot())
	}
	lock, err := os.OpenFile(path+".lock"+slot(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 3
	}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	if mode == "grandchild" {
		// It inherited the lock as descriptor 3, and so keeps it: the office is taken for as long as it lives.
		say("grandchild")
		for range terms {
		}
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		say("overlap")
		return 4
	}
	if mode == "stubborn" {
		self, err := os.Executable()
		if err != nil {
			return 3
		}
		cmd := exec.Command(self, childRole, path, "grandchild")
		cmd.ExtraFiles = []*os.File{lock}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if cmd.Start() != nil {
			return 3
		}
	}
	say("start")
	switch mode {
	case "patient":
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(terms)
		}()
	case "brief":
		time.AfterFunc(50*time.Millisecond+rand.N(400*time.Millisecond), func() { close(terms) })
	}
	for range terms {
		say("term")
		if mode == "brief" {
			time.Sleep(100 * time.Millisecond) // it has something to tidy up
		}
		if mode != "stubborn" {
			return 0
		}
	}
	return 0
}

// slot is the slot of a semaphore that the child holds; -1 under an office.
func slot() string { return cmp.Or(os.Getenv("CONCH_SLOT"), "-1") }

// office is one name, the children that ran under it, and the etcd that it is in.
type office struct {
	t         *testing.T
	name, log string
	endpoints []string
}

func newOffice(t *testing.T, endpoints ...string) *office {
	return &office{t: t, name: etcdtest.Office(t), log: t.TempDir() + "/log", endpoints: endpoints}
}

// elect starts a wrapper of a child.
func (o *office) elect(mode string, flags ...string) *run.Process {
	o.t.Helper()
	return run.Start(o.t, o.env(), o.args("elect", mode, flags)...)
}

// sema starts a wrapper of a child that holds one of max slots, with stdin, which may be nil.
func (o *office) sema(max int, mode string, stdin io.Reader, flags ...string) *run.Process {
	o.t.Helper()
	args := o.args("sema", mode, append([]string{"--max", strconv.Itoa(max)}, flags...))
	return run.StartWith(o.t, run.Options{Env: o.env(), Args: args, Stdin: stdin})
}

// electIn is elect in another network.
func (o *office) electIn(ns *netns.Namespace, mode string, flags ...string) *run.Process {
	o.t.Helper()
	return start(o.t, ns, o.env(), append([]string{run.Build(o.t).Conch}, o.args("elect", mode, flags)...)...)
}

func (o *office) env() []string { return []string{"CONCH_ENDPOINTS=" + strings.Join(o.endpoints, ",")} }

// args are those of a wrapper.
func (o *office) args(command, mode string, flags []string) []string {
	o.t.Helper()
	self, err := os.Executable()
	if err != nil {
		o.t.Fatal(err)
	}
	return append(append([]string{command, o.name}, flags...), "--", self, childRole, o.log, mode)
}

// act is one line of the log.
type act struct {
	what string
	pid  int
	at   time.Duration
	rev  uint64
	slot int // -1: of an office
}

func (o *office) acts() []act {
	o.t.Helper()
	raw, _ := os.ReadFile(o.log) // not there: nobody has acted yet
	var acts []act
	for line := range strings.Lines(string(raw)) {
		var a act
		var n int64
		if _, err := fmt.Sscan(line, &a.what, &a.pid, &n, &a.rev, &a.slot); err != nil {
			continue // a line that is being written
		}
		a.at = time.Duration(n)
		acts = append(acts, a)
	}
	return acts
}

// await waits for the n-th line that says what, and returns it. It polls: the writers are killed at any moment.
func (o *office) await(what string, n int) act {
	o.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) { // a poll of a file
		seen := 0
		for _, a := range o.acts() {
			if a.what == "overlap" {
				o.t.Fatalf("two children at once: %v", o.acts())
			}
			if a.what == what {
				if seen++; seen == n {
					return a
				}
			}
		}
	}
	o.t.Fatalf("no %q number %d: %v", what, n, o.acts())
	return act{}
}

// done asserts that no two children were alive at once, and that tokens rose: those of each slot.
func (o *office) done() {
	o.t.Helper()
	last := map[int]uint64{}
	for _, a := range o.acts() {
		switch {
		case a.what == "overlap":
			o.t.Errorf("two children at once: %v", o.acts())
		case a.what == "start" && a.rev <= last[a.slot]:
			o.t.Errorf("slot %d: token %d after %d", a.slot, a.rev, last[a.slot])
		case a.what == "start":
			last[a.slot] = a.rev
		}
	}
}

// dead waits until a process is no more, and says when that was seen.
func dead(t *testing.T, pid int) time.Duration {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return coord.Now() // gone already
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
		switch {
		case err == unix.EINTR:
		case n == 1:
			return coord.Now()
		default:
			t.Fatalf("process %s lives on: %v", strconv.Itoa(pid), err)
		}
	}
}
