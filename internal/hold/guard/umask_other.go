//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package guard

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// withUmask refuses: the umask is the whole process's here, and this process is the wrapper.
func withUmask(mask *int, fork func() error) error {
	if mask != nil {
		return os.NewSyscallError("umask of one run", unix.ENOTSUP)
	}
	return fork()
}

// descriptorPath is how this process opens one of its descriptors again.
func descriptorPath(fd int) string { return "/dev/fd/" + strconv.Itoa(fd) }
