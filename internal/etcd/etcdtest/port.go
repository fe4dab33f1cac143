package etcdtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Ports come from below the range that the kernel gives to outgoing connections, so that a member's port
// is not taken while the member is down.
const firstPort, lastPort = 10_000, 29_999

// reserve gives a loopback address for the test's life. Two test processes never get the same one: each
// port is a file under a lock that ends with its process.
func reserve(t testing.TB) string {
	t.Helper()
	address, release, err := reservePort()
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
	t.Cleanup(release)
	return address
}

func reservePort() (address string, release func(), err error) {
	dir := filepath.Join(os.TempDir(), "coord-etcdtest-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("reserve port: %w", err)
	}
	for range 1000 {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		port := strconv.Itoa(number)
		f, err := os.OpenFile(filepath.Join(dir, port), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return "", nil, fmt.Errorf("reserve port: %w", err)
		}
		address := net.JoinHostPort("127.0.0.1", port)
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && bindable(number) {
			return address, func() { f.Close() }, nil
		}
		f.Close()
	}
	return "", nil, fmt.Errorf("reserve port: none free between %d and %d", firstPort, lastPort)
}

// bindable reports whether nobody outside of these tests listens there. The socket that finds out is bound and never
// listens: a process that some other test forks in this very moment has it too until its exec, and a listener that lives
// on there would keep the port from the member it is meant for.
func bindable(port int) bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	unix.CloseOnExec(fd)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) != nil {
		return false
	}
	return unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) == nil
}
