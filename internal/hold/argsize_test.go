package hold_test

import (
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/hold"
)

// The kernel is asked as well: what is accepted here it executes, and what is not it refuses.
func TestAnArgumentThatNoProgramCanGetIsKnownBefore(t *testing.T) {
	t.Parallel()
	limit := hold.ArgLimit()
	if (limit == 0) != (runtime.GOOS != "linux") {
		t.Fatalf("limit %d on %s", limit, runtime.GOOS)
	}
	for _, n := range []int{0, limit - 1, limit, limit + 1} {
		arg := strings.Repeat("x", max(n, 0))
		err := hold.CheckArg(arg)
		if limit == 0 {
			if err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
			continue
		}
		if (err == nil) != (n <= limit) || err != nil && !errors.Is(err, hold.ErrNotExecutable) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if got := exec.Command("/bin/true", arg).Run(); errors.Is(got, syscall.E2BIG) != (err != nil) {
			t.Errorf("%d bytes: the kernel says %v, we say %v", n, got, err)
		}
	}
}
