//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what a process has used so far, to the nanosecond: its own processor clock, whose id is made of its
// process id (see clock_getcpuclockid(3)).
func processorTime(pid int) (time.Duration, error) {
	const cpuClock = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|cpuClock), &ts); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// pssBelow adds up a process and its descendants, without those that run the program but, in megabytes.
func pssBelow(pid int, but string) (float64, error) {
	if exe, err := os.Readlink(procPath(pid, "exe")); err == nil && exe == but {
		return 0, nil
	}
	sum, err := pss(pid)
	if err != nil {
		return 0, err
	}
	lists, err := filepath.Glob(procPath(pid, "task/*/children"))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that ended
		}
		for _, field := range strings.Fields(string(raw)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return 0, fmt.Errorf("read children: %w", err)
			}
			more, err := pssBelow(child, but)
			if err != nil {
				return 0, err
			}
			sum += more
		}
	}
	return sum, nil
}

// pss is a process's share of the memory, in megabytes.
func pss(pid int) (float64, error) {
	raw, err := os.ReadFile(procPath(pid, "smaps_rollup"))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("read memory of process %d: no Pss", pid)
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// exists reports whether a process is there, be it a zombie.
func exists(pid int) bool {
	_, err := os.Stat(procPath(pid, "stat"))
	return err == nil
}
