package daemon

import (
	"runtime"
	"runtime/debug"

	"github.com/go-coord/coord/internal/cli"
)

// garbage is how much of it there may be before it is collected, in percent of what is in use; garbageBusy, in a burst, which makes much of
// it in a moment: to look for it costs a tenth of the daemon's time then.
const garbage, garbageBusy = 100, 400

// Frugal lets this process compute on one processor at a time, unless its environment says otherwise. A main calls it.
//
// A start costs a daemon less than it costs the guard, which is another process and forks one after the other; and with more processors each
// message wakes threads that find nothing to do, which is a quarter of what an idle daemon costs.
func Frugal(env cli.Env) {
	if _, ok := env.Lookup("GOMAXPROCS"); !ok {
		runtime.GOMAXPROCS(1)
	}
}

// collecting is told whether there is a burst. nil: the environment says how garbage is collected.
func collecting(env cli.Env) func(busy bool) {
	if _, ok := env.Lookup("GOGC"); ok {
		return nil
	}
	return func(busy bool) {
		if busy {
			debug.SetGCPercent(garbageBusy)
		} else {
			debug.SetGCPercent(garbage)
		}
	}
}
