package record

// Status is how a start ended, or that there was none.
type Status string

// Statuses. The first four ran to an end; lost ran, and nobody saw the end; the last three were never started.
const (
	Success Status = "success"
	Failed  Status = "failed"  // an exit code that is none of the job's success codes, or a signal that nobody here sent
	Timeout Status = "timeout" // ended here, after run_ttl
	Killed  Status = "killed"  // ended here, for another reason
	Lost    Status = "lost"    // the daemon that ran it is gone, or could not prove any more that it was alone
	Skipped Status = "skipped" // a decision of the job's, of an operator's, or of the cluster's state
	Missed  Status = "missed"  // its time passed
	Error   Status = "error"   // claimed, and could not be started
)

// Statuses are all of them, in the order in which they are told.
func Statuses() []Status {
	return []Status{Success, Failed, Timeout, Killed, Lost, Skipped, Missed, Error}
}

// Started reports whether a process was started, or may have been.
func (s Status) Started() bool { return s != Skipped && s != Missed && s != Error }

// Bad reports whether somebody may have to look.
func (s Status) Bad() bool { return s != Success && s != Skipped }

// Reason says why. The list is closed: what is read and not on it is shown as it is.
type Reason string

// Reasons.
const (
	ReasonNone        Reason = ""               // success, or an exit code that speaks for itself
	ReasonExit        Reason = "exit_code"      // failed: of the command
	ReasonSignal      Reason = "signal"         // failed: a signal that was not ours ended it
	ReasonRunTTL      Reason = "run_ttl"        // timeout
	ReasonKill        Reason = "kill"           // killed: an operator asked
	ReasonReplaced    Reason = "replaced"       // killed or skipped: a later tick took its place
	ReasonShutdown    Reason = "shutdown"       // killed: its daemon had to end and could wait no longer
	ReasonSession     Reason = "session_lost"   // lost: its daemon could not prove to etcd any more that it lives
	ReasonDaemon      Reason = "daemon_died"    // lost: its guard ended it
	ReasonNode        Reason = "node_gone"      // lost: nothing was heard; its marker went, and its time was waited for
	ReasonGuard       Reason = "guard_lost"     // lost: its guard was killed or frozen
	ReasonOverlap     Reason = "overlap"        // skipped: the run before it had not ended
	ReasonPaused      Reason = "paused"         // skipped: the job, or the cluster, was paused
	ReasonNoNode      Reason = "no_node"        // skipped: no live node matched the job's selector
	ReasonDeadline    Reason = "start_deadline" // missed: nobody started it in time
	ReasonCapacity    Reason = "no_capacity"    // missed: each node that matched was full, draining or not fit to claim
	ReasonLateClaim   Reason = "late_claim"     // missed: claimed, and the answer came after the deadline
	ReasonNotStarted  Reason = "not_started"    // error: the command, its user or its folder could not be had
	ReasonSpec        Reason = "bad_spec"       // error: the job cannot be read by this node
	ReasonUnconfirmed Reason = "unconfirmed"    // missed: claimed, and the daemon did not learn of it
)
