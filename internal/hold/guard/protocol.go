package guard

import (
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// The protocol between a wrapper and its guard: one JSON object a line, over two pipes.
//
// A guard serves many runs from the start (conchd has one guard for all its jobs), so every message
// names a run. A run is one child with all of its descendants, or one hook.
//
// A testament is kept under the name of the run that it is about. It is executed only when that run is gone, and
// with it every run named after it with a slash: a hook of run "7" is called "7/on-lose", say. A run that no
// testament covers holds up all of them.

// Request is what the wrapper says.
type Request struct {
	Op  Op     `json:"op"`
	Run string `json:"run,omitempty"` // chosen by the wrapper, unique in the life of the guard

	// Start only.
	Spec *Spec `json:"spec,omitempty"`

	// Start and Extend: absolute, on the clock that runs through suspend. A value below the one that the
	// guard has is ignored: deadlines only rise. Zero in Start: this run has no deadline of its own.
	Deadlines hold.Deadlines `json:"deadlines,omitzero"`

	// Start: how long what is left after the child's own exit has between SIGTERM and SIGKILL. Zero: both at
	// once. It also stands in for a Stop that gives no KillAt.
	KillAfter time.Duration `json:"kill_after,omitempty"`

	// Stop: SIGKILL follows at this instant, or at Deadlines.Kill when that is earlier.
	KillAt hold.Instant `json:"kill_at,omitempty"`
	Reason string       `json:"reason,omitempty"`

	// Signal only.
	Signal int `json:"signal,omitempty"`

	// Bequeath and Start: what the release program gets on its standard input if the wrapper dies.
	Testament []byte `json:"testament,omitempty"`
}

// Op is what a Request asks for.
type Op string

const (
	OpStart    Op = "start"    // fork and exec Spec, unless the clock is at or past Deadlines.Term; both timers are armed before the fork
	OpExtend   Op = "extend"   // the hold was renewed: raise the deadlines
	OpStop     Op = "stop"     // SIGTERM to the run now, SIGKILL at KillAt
	OpKill     Op = "kill"     // SIGKILL to everything of the run now
	OpSignal   Op = "signal"   // pass Signal on to the run's process group
	OpBequeath Op = "bequeath" // remember Testament for this run: it is executed if the wrapper dies before OpForget, child or no child
	OpForget   Op = "forget"   // the hold behind this run was released: drop its testament
	OpBye      Op = "bye"      // the wrapper is done: end without executing anything (runs still alive are killed first)
)

// Event is what the guard says. Time is the guard's clock when it happened.
type Event struct {
	Kind   Kind         `json:"kind"`
	Run    string       `json:"run,omitempty"`
	Time   hold.Instant `json:"time"`
	Pid    int          `json:"pid,omitempty"`
	Code   int          `json:"code,omitempty"`   // Exited: exit status; Refused: errno of open, fork or exec, 0 when it was too late
	Signal int          `json:"signal,omitempty"` // Exited: the signal that ended it, 0 for an exit; TermSent, KillSent, Stopped: the signal
	Reason string       `json:"reason,omitempty"`
	Pids   []int        `json:"pids,omitempty"` // Stuck: what is left
	Usage  Usage        `json:"usage,omitzero"` // Exited: what the direct child used
}

// Kind is what an Event reports.
type Kind string

const (
	KindReady    Kind = "ready"     // the guard is up, subreaper set, settings read
	KindStarted  Kind = "started"   // exec succeeded
	KindRefused  Kind = "refused"   // nothing was started, and nothing will be for this run
	KindExited   Kind = "exited"    // the direct child ended; descendants may be left, they are being ended
	KindTermSent Kind = "term-sent" // SIGTERM went to the run
	KindKillSent Kind = "kill-sent" // SIGKILL went to everything of the run (sent once, sweeping goes on)
	KindStopped  Kind = "stopped"   // job control stopped the child; SIGCONT was sent
	KindStuck    Kind = "stuck"     // SIGKILL was sent and something is still there after a second; repeated with back-off
	KindGone     Kind = "gone"      // nothing of the run is left; proven, final
	KindLost     Kind = "lost"      // made by the wrapper's side: the guard's pipe ended. No event follows
)
