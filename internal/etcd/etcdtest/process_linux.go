package etcdtest

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent lets the kernel kill a child when the thread that forked it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// frozen reports whether all threads of a process are stopped.
func frozen(pid int) (bool, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		b, err := os.ReadFile(dir + "/" + task.Name() + "/stat")
		if err != nil {
			return false, nil // a thread that just ended
		}
		// The state is the first field after the name, which is in parentheses and may hold any byte.
		if i := bytes.LastIndexByte(b, ')'); i < 0 || i+2 >= len(b) || b[i+2] != 'T' {
			return false, nil
		}
	}
	return len(tasks) > 0, nil
}
