//go:build !linux

package coord

import "time"

var processStart = time.Now()

// Now reads the clock that every deadline of this package is judged by. Here it is Go's monotonic clock,
// counted from the start of the process: it stands still while the machine is suspended, so a suspended
// holder notices its loss late. On Linux the clock runs through suspend.
func Now() time.Duration { return time.Since(processStart) }
