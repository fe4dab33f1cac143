package guard

import (
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// run is one child with everything that descends from it.
type run struct {
	id        string
	spec      *Spec
	deadlines hold.Deadlines
	killAfter time.Duration

	pid    int              // the leader, and its process group; 0 while it is being forked
	early  []syscall.Signal // to be passed on once it is known whom to
	exited bool             // the leader is a zombie, kept
	usage  Usage            // of the leader, once it is one
	reaped bool             // the leader is no more: its number may no longer be signalled

	killAt  hold.Instant // asked for by Stop, Kill, leftovers; 0 for none
	why     string       // the reason that goes with killAt
	overdue bool         // Deadlines.Term has passed: no way back
	term    string       // why SIGTERM is wanted; empty: it is not
	termed  bool         // it was sent
	killed  bool         // SIGKILL was sent, sweeping goes on
	cleared bool         // leftovers have had their SIGTERM
	left    []int        // what was last seen of the run apart from its leader

	stopped            syscall.Signal // job control stopped the leader; not yet undone
	contAt             hold.Instant   // no SIGCONT before this
	sweepAt, stuckAt   hold.Instant
	sweepGap, stuckGap time.Duration
}

// extend raises the deadlines, each by itself. Past Term there is no way back.
func (r *run) extend(d hold.Deadlines) {
	if r.overdue {
		return
	}
	r.deadlines.Term = max(r.deadlines.Term, d.Term)
	r.deadlines.Kill = max(r.deadlines.Kill, d.Kill)
}

// limit asks for SIGKILL at an instant. The earliest wish stands.
func (r *run) limit(at hold.Instant, why string) {
	if r.killAt == 0 || at < r.killAt {
		r.killAt, r.why = at, why
	}
}

func (r *run) wantTerm(why string) {
	if r.term == "" {
		r.term = why
		if why == "" {
			r.term = "asked to stop"
		}
	}
}

// killDue is when SIGKILL is due, and why.
func (r *run) killDue() (hold.Instant, string) {
	if k := r.deadlines.Kill; k != 0 && (r.killAt == 0 || k <= r.killAt) {
		return k, ReasonDeadline
	}
	return r.killAt, r.why
}

// visible is what is known to be alive of a run.
func (r *run) visible() []int {
	if r.pid == 0 || r.exited {
		return r.left
	}
	return append([]int{r.pid}, r.left...)
}

// passed reports whether an instant that is not "never" has come.
func passed(at, now hold.Instant) bool { return at != 0 && now >= at }

// earlier is the earlier of two instants of which 0 means never.
func earlier(a, b hold.Instant) hold.Instant {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
