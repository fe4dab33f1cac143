package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Guard waits for the guard of a wrapper and gives its process id.
func (p *Process) Guard() int {
	p.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		for _, pid := range Children(p.Pid()) {
			if Comm(pid) == "holdguard" {
				return pid
			}
		}
		select {
		case <-p.exited:
			p.t.Fatalf("process %d ended before its guard was seen; stderr: %s", p.Pid(), p.Stderr())
		case <-time.After(2 * time.Millisecond): // the kernel has no event for a child that changes its name
		}
	}
	p.t.Fatalf("process %d has no guard", p.Pid())
	return 0
}

// Children are the process ids of the direct children of pid.
func Children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var all []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // it ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// Parent is the process id of the parent of pid; 0 where there is no such process. A zombie has one.
func Parent(pid int) int {
	_, parent := stat(pid)
	return parent
}

// Comm is the name of a process as the kernel has it; empty where there is none.
func Comm(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(text))
}

// Alive reports whether a process exists and is no zombie.
func Alive(pid int) bool {
	state, _ := stat(pid)
	return state != "" && state != "Z" && state != "X"
}

// frozen reports whether all threads of a process are stopped.
func frozen(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil || !strings.HasPrefix(string(text)[strings.LastIndex(string(text), ")")+1:], " T") {
			return false
		}
	}
	return len(tasks) > 0
}

// stat is the state of a process and its parent; empty and 0 where there is none.
func stat(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// The name is in parentheses and may hold any; what is wanted follows the last one.
	_, rest, _ := strings.Cut(string(text)[strings.LastIndex(string(text), ")"):], " ")
	_, _ = fmt.Sscan(rest, &state, &parent)
	return state, parent
}
