package coord

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads the clock that every deadline of this package is judged by: CLOCK_BOOTTIME, which runs on
// while the machine is suspended and which no wall-clock step touches. Its origin is the machine's boot,
// so readings of two processes on one machine compare.
func Now() time.Duration {
	var ts unix.Timespec
	// The only error is a clock that the kernel does not know; it has known this one since 2.6.39.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano())
}
