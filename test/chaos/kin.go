//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/test/run"
)

// guardName is what the kernel calls a guard.
const guardName = "holdguard"

// acts reports whether a variable acts on the commands.
func acts(variable string) bool {
	return strings.HasPrefix(variable, "CONCH_") || strings.HasPrefix(variable, "ETCD")
}

// victim is a process that is held by a descriptor: what is sent to it never reaches another one that has got its number.
type victim struct{ pid, fd int }

// capture holds a process; false where there is none.
func capture(pid int) (victim, bool) {
	if pid <= 0 {
		return victim{}, false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	return victim{pid, fd}, err == nil
}

// signal sends a signal; whoever has ended gets none.
func (v victim) signal(s unix.Signal) { _ = unix.PidfdSendSignal(v.fd, s, nil, 0) }

func (v victim) release() { _ = unix.Close(v.fd) }

// guardOf is the guard of a wrapper; 0: it has none now.
func guardOf(wrapper int) int {
	for _, pid := range run.Children(wrapper) {
		if run.Comm(pid) == guardName {
			return pid
		}
	}
	return 0
}

// childOf is the direct child of a wrapper's guard; 0: it has none now.
func childOf(wrapper int) int {
	for _, pid := range run.Children(guardOf(wrapper)) {
		if run.Alive(pid) {
			return pid
		}
	}
	return 0
}

// family are a process and all its descendants, ancestors first.
func family(pid int) (all []int) {
	all = append(all, pid)
	for i := 0; i < len(all); i++ {
		all = append(all, run.Children(all[i])...)
	}
	return all
}

// marked are the processes alive that a run has started, whatever became of their parents, by their number and name.
func marked(mark string) (all []string) {
	variable := []byte(runEnv + "=" + mark)
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		for v := range bytes.SplitSeq(environ, []byte{0}) {
			if bytes.Equal(v, variable) && run.Alive(pid) {
				all = append(all, strconv.Itoa(pid)+" "+run.Comm(pid))
			}
		}
	}
	return all
}
