//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/test/netns"
	"github.com/go-coord/coord/test/run"
)

// innerEnv makes this program the inner process, and has its config.
const innerEnv = "CHAOS_INNER"

// linger is how long what the inner process has left may take to end by itself: guards, which try to release; a moment, where the
// inner process was killed, and etcd with it.
const (
	linger = 15 * time.Second
	moment = 2 * time.Second
)

// outer starts the inner process, hands signals on to it, ends what is left of it, and removes the folder of the run.
func outer(c config) int {
	deaf()
	runtime.LockOSThread() // the inner process dies with the thread that made it
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return c.tidy(trouble(c, err))
	}
	pid, err := c.startInner()
	if err != nil {
		return c.tidy(trouble(c, err))
	}
	go func() {
		for s := range signals {
			_ = syscall.Kill(pid, s.(syscall.Signal)) // our child, not reaped before we end
		}
	}()
	code, patience := await(pid)
	if left := sweep(patience); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "chaos: left behind, and killed: %s\n", strings.Join(left, ", "))
		code = max(code, codeViolation)
	}
	return c.tidy(code)
}

// deaf lets nobody who stops reading what is said end this process before it has tidied up. What is caught, unlike what is ignored, is
// not inherited.
func deaf() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// startInner starts the inner process, in a network of its own if it can be had.
func (c *config) startInner() (int, error) {
	argv := []string{c.Self}
	// Where nft, ip and tc are, also for users in whose path they are not.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		return 0, err
	}
	if c.Netns {
		unshare, err := networked()
		if err != nil {
			fmt.Fprintf(os.Stderr, "chaos: no network namespaces, so none of the faults of the network: %v\n", err)
			c.Netns = false
		} else {
			argv = append(unshare, argv...)
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env:   append(os.Environ(), innerEnv+"="+string(text)),
		Files: []uintptr{0, 1, 2},
		// A group of its own: a terminal's interrupt comes once, from us.
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true},
	})
}

// networked is how a network is had, if that works here.
func networked() ([]string, error) {
	ns, err := netns.New(netns.Here())
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	// That there is a bridge and a filter has to be seen before it is relied on.
	if err := netns.Bridge(netns.Link{In: ns, Name: "bridge"}); err != nil {
		return nil, err
	}
	if err := ns.Filter("probe", netns.Accept, netns.Accept); err != nil {
		return nil, err
	}
	return netns.Unshare()
}

// await waits for the end of a child, and reaps the orphans meanwhile. It returns its code, and how long to wait for what it leaves.
func await(pid int) (int, time.Duration) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return codeTrouble, moment
		case ended == pid && status.Signaled():
			fmt.Fprintf(os.Stderr, "chaos: the inner process was killed: %v\n", status.Signal())
			return codeTrouble, moment
		case ended == pid:
			return status.ExitStatus(), linger
		}
	}
}

// sweep waits until all children of this process, who has adopted whatever lost its parent, are gone, and kills those that are not
// in time. It returns these.
func sweep(patience time.Duration) (left []string) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // a wait that ends at a time there is none
		ended, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if ended > 0 || err == syscall.EINTR {
			continue
		}
		if err != nil {
			return left
		}
		if time.Now().Before(end) {
			continue
		}
		for _, pid := range run.Children(os.Getpid()) {
			if run.Alive(pid) {
				left = append(left, fmt.Sprintf("%d %s", pid, run.Comm(pid)))
				_ = syscall.Kill(pid, syscall.SIGKILL) // our own child, which only we reap
			}
		}
		end = time.Now().Add(time.Second)
	}
}

// tidy removes the scratch, and all where nothing is to be kept: without -dir only what is wrong is.
func (c config) tidy(code int) int {
	gone := c.Dir
	if code == codeViolation || c.Keep {
		gone = c.scratch()
	}
	if err := os.RemoveAll(gone); err != nil {
		return trouble(c, err)
	}
	if code == codeViolation {
		fmt.Fprintf(os.Stderr, "chaos: history.jsonl, timeline.svg and the logs are in %s\nchaos: again: %s\n", filepath.Clean(c.Dir), c.replay())
	}
	return code
}

func trouble(c config, err error) int {
	hint := "; with -dir its logs are kept"
	if c.Keep {
		hint = "; its logs are in " + c.Dir
	}
	fmt.Fprintf(os.Stderr, "chaos: %v%s\n", err, hint)
	return codeTrouble
}
