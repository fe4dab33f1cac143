package hold

import (
	"fmt"
	"os"
	"runtime"
)

// argPages is how many pages Linux accepts of one argument or variable (execve(2)).
const argPages = 32

// ArgLimit is how many bytes one argument or variable may have; 0 where that is not known.
func ArgLimit() int {
	if runtime.GOOS != "linux" {
		return 0
	}
	return argPages*os.Getpagesize() - 1 // its end is a byte, too
}

// CheckArg finds out before something is held that no program can be given this argument. The limit of all of them
// together is left for the kernel to judge: it depends on more than can be seen from here.
func CheckArg(arg string) error {
	if limit := ArgLimit(); limit > 0 && len(arg) > limit {
		return fmt.Errorf("%w: an argument has %d bytes, at most %d are accepted", ErrNotExecutable, len(arg), limit)
	}
	return nil
}
