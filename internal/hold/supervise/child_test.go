package supervise

import (
	"errors"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/hold"
)

// Red when a system without room is taken for a fault of the command.
func TestAFailedExecIsToldByWhoseFaultItIs(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]struct {
		is   error
		code int
	}{
		syscall.EMFILE:  {hold.ErrNoGuard, 69},
		syscall.ENFILE:  {hold.ErrNoGuard, 69},
		syscall.EAGAIN:  {hold.ErrNoGuard, 69},
		syscall.ENOMEM:  {hold.ErrNoGuard, 69},
		syscall.ENOENT:  {hold.ErrNotFound, 127},
		syscall.ENOTDIR: {hold.ErrNotFound, 127},
		syscall.EACCES:  {hold.ErrNotExecutable, 126},
		syscall.EPERM:   {hold.ErrNotExecutable, 126},
		syscall.ENOEXEC: {hold.ErrNotExecutable, 126},
		syscall.E2BIG:   {hold.ErrNotExecutable, 126},
		syscall.ETXTBSY: {hold.ErrNotExecutable, 126},
		syscall.EISDIR:  {hold.ErrNotExecutable, 126},
	} {
		err := execError(errno, "/bin/work")
		if !errors.Is(err, want.is) || !errors.Is(err, errno) || hold.ExitCode(err) != want.code {
			t.Errorf("%v: %v, code %d; want %v, code %d", errno, err, hold.ExitCode(err), want.is, want.code)
		}
	}
}
