//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package guard

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// usageOf reads what the kernel counted.
func usageOf(ru *unix.Rusage) Usage {
	unit := int64(1024)
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	return Usage{User: time.Duration(ru.Utime.Nano()), Sys: time.Duration(ru.Stime.Nano()), MaxRSS: int64(ru.Maxrss) * unit}
}
