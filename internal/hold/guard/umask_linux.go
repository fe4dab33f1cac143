package guard

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// withUmask forks under an umask of its own. It is called on the starter's thread, which runs nothing else and from which
// no other thread comes. That thread leaves first what it shares with the others: their umask never changes.
func withUmask(mask *int, fork func() error) error {
	if mask == nil {
		return fork()
	}
	if *mask&^0o777 != 0 {
		return unix.EINVAL
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	own := unix.Umask(*mask)
	defer unix.Umask(own)
	return fork()
}

// descriptorPath is how another process, and this one, opens a descriptor of this process anew.
func descriptorPath(fd int) string {
	return "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(fd)
}
