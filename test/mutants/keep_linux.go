package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of whatever descends from it and loses its own.
func adopt() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// sweep kills its children until there are none: the children of those that die become its own.
func sweep() {
	for {
		names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
		for _, name := range names {
			list, _ := os.ReadFile(name) // a thread that has ended has none
			for pid := range strings.FieldsSeq(string(list)) {
				if n, err := strconv.Atoi(pid); err == nil {
					_ = unix.Kill(n, unix.SIGKILL) // ours, and nobody else reaps it
				}
			}
		}
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && err != unix.EINTR {
			return // there is none any more
		}
	}
}
