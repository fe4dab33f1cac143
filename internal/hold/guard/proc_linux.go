package guard

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What is read of /proc is read with three system calls a file. Package os would offer each one to the network poller
// first, which costs more than all of the rest, and there are some dozens at each end of a child.

// readProc reads a file of /proc.
func readProc(path string) ([]byte, error) {
	fd, err := openProc(path, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, 512)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := readOnce(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return buf, nil
		}
		buf = buf[:len(buf)+n]
	}
}

// listProc lists a folder of /proc.
func listProc(path string) ([]string, error) {
	fd, err := openProc(path, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 4096)
	for {
		n, err := readOnce(func() (int, error) { return unix.ReadDirent(fd, buf) })
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

func openProc(path string, flags int) (int, error) {
	return readOnce(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0) })
}

// readOnce repeats a call that a signal interrupted.
func readOnce(call func() (int, error)) (n int, err error) {
	err = ignoreEINTR(func() error {
		n, err = call()
		return err
	})
	return n, err
}

// childrenOf reads the list of one thread; process is a pid or "self".
func childrenOf(process, tid string) ([]int, error) {
	data, err := readProc("/proc/" + process + "/task/" + tid + "/children")
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range bytes.FieldsSeq(data) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// allChildrenOf lists the children of all threads of a process.
func allChildrenOf(pid int) []int {
	process := strconv.Itoa(pid)
	tids, err := listProc("/proc/" + process + "/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, tid := range tids {
		own, _ := childrenOf(process, tid)
		pids = append(pids, own...)
	}
	return pids
}

// parentOf is 0 when the process is no more.
func parentOf(pid int) int {
	data, err := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// "pid (name) state ppid ...", and the name may hold anything, parentheses too.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
