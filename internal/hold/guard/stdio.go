//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package guard

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Path is how a guard finds a file that this process has open, for Spec: as a description of its own, with an offset of
// its own, where the system can do that. The file has to stay open until the run was started or refused.
func Path(f *os.File) (string, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return "", fmt.Errorf("find path of open file: %w", err)
	}
	var path string
	// Fd would do, and leave the file without deadlines on some systems.
	if err := raw.Control(func(fd uintptr) { path = descriptorPath(int(fd)) }); err != nil {
		return "", fmt.Errorf("find path of open file: %w", err)
	}
	return path, nil
}

// stdio are the first three descriptors of one child.
type stdio struct {
	fds    [3]uintptr
	opened []int
}

// openStdio opens what a Spec names, and takes the guard's own for the rest. It does not wait for the other end of a
// pipe; a child gets descriptors that do wait.
func openStdio(own [3]*os.File, s *Spec) (*stdio, error) {
	files := &stdio{}
	for i, path := range []string{s.Stdin, s.Stdout, s.Stderr} {
		if path == "" {
			files.fds[i] = own[i].Fd()
			continue
		}
		mode := unix.O_WRONLY | unix.O_APPEND
		if i == 0 {
			mode = unix.O_RDONLY
		}
		fd, err := openWaiting(path, mode)
		if err != nil {
			files.close()
			return nil, fmt.Errorf("open %s: %w", [...]string{"stdin", "stdout", "stderr"}[i], err)
		}
		files.opened = append(files.opened, fd)
		files.fds[i] = uintptr(fd)
	}
	return files, nil
}

// openWaiting opens without waiting a file that waits from then on. What nobody else may have meanwhile is closed at exec,
// and no terminal becomes anybody's.
func openWaiting(path string, mode int) (fd int, err error) {
	for {
		fd, err = unix.Open(path, mode|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, err
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (s *stdio) close() {
	for _, fd := range s.opened {
		_ = unix.Close(fd)
	}
}
