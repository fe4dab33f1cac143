package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// What people read of a result. All of it is safe on a terminal, whatever stands in etcd.

// idOf is the last element of a result's key, as it is printed.
func idOf(r *record.Result) string {
	if id, err := r.ID(); err == nil {
		return id.String()
	}
	return strconv.FormatInt(r.Tick, 10)
}

// endingText says how a start ended, or why there was none, in plain words.
func endingText(r *record.Result) string {
	text := statusText(r)
	if why := reasonText(r); why != "" {
		text += ": " + why
	}
	if r.Ticks > 0 {
		text += fmt.Sprintf(" (%s ticks, from %s to %s)", countText(r.Ticks), stamp(time.Unix(r.From, 0)), stamp(time.Unix(r.Tick, 0)))
	}
	if r.Detail != "" {
		text += " (" + shown(r.Detail) + ")"
	}
	if !r.StartedAt.IsZero() {
		text += fmt.Sprintf("; started %s after it was due, ran %s", brief(msec(r.LateMS)), brief(msec(r.WallMS)))
	}
	if r.Attempt > 1 {
		text += fmt.Sprintf("; attempt %d", r.Attempt)
	}
	if r.By != "" {
		text += "; asked for by " + shown(r.By)
	}
	return text
}

// statusText is the status, and on which node it came about.
func statusText(r *record.Result) string {
	if r.Host == "" {
		return shown(string(r.Status))
	}
	if r.Status.Started() {
		return shown(string(r.Status)) + " on " + shown(r.Host)
	}
	return shown(string(r.Status)) + ", says " + shown(r.Host)
}

// countText is how many ticks a range has: they are counted up to a bound.
func countText(n int) string {
	if n >= record.MaxTicks {
		return strconv.Itoa(record.MaxTicks) + " or more"
	}
	return strconv.Itoa(n)
}

// reasonText is a reason in plain words; nothing for none. The list is closed: what is not on it is shown as it is.
func reasonText(r *record.Result) string {
	switch r.Reason {
	case record.ReasonExit:
		return "exit code " + strconv.Itoa(r.ExitCode)
	case record.ReasonSignal:
		return "ended by signal " + shown(r.Signal) + ", which was not ours"
	}
	text, ok := map[record.Reason]string{
		record.ReasonNone:        "",
		record.ReasonRunTTL:      "it took longer than its run_ttl, and was ended",
		record.ReasonKill:        "an operator asked for its end",
		record.ReasonReplaced:    "a later tick took its place",
		record.ReasonShutdown:    "its daemon had to stop, and could wait no longer",
		record.ReasonSession:     "its daemon could not prove to etcd any more that it lives",
		record.ReasonDaemon:      "its daemon died or was frozen, and its guard ended it",
		record.ReasonNode:        "nothing was heard of its node any more",
		record.ReasonGuard:       "its guard was killed or frozen",
		record.ReasonOverlap:     "the run before it had not ended",
		record.ReasonPaused:      "the job, or the cluster, was paused",
		record.ReasonNoNode:      "no live node matched what the job selects",
		record.ReasonDeadline:    "nobody started it in time",
		record.ReasonCapacity:    "each node that matched was full, drained, stopping or not fit to claim",
		record.ReasonLateClaim:   "it was claimed, and the answer came after the deadline",
		record.ReasonNotStarted:  "the command, its user or its folder could not be had",
		record.ReasonSpec:        "the job could not be read by this node",
		record.ReasonUnconfirmed: "it was claimed, and the daemon did not learn of it",
	}[r.Reason]
	if !ok {
		return shown(string(r.Reason))
	}
	return text
}

// resultLine is a result in one line, for who waited for it.
func resultLine(r *record.Result, asJSON bool) []byte {
	if asJSON {
		return cli.JSONLine(r)
	}
	return []byte(shown(r.Job) + "/" + idOf(r) + ": " + endingText(r) + "\n")
}

// tailText is the end of a run's output: its lines, each safe on a terminal.
func tailText(r *record.Result) string {
	if r.Output.Tail == "" {
		return ""
	}
	var b strings.Builder
	if r.Output.Truncated {
		fmt.Fprintf(&b, "... (of %d bytes the last %d are kept)\n", r.Output.Bytes, len(r.Output.Tail))
	}
	for line := range strings.Lines(r.Output.Tail) {
		// A tab is no harm, and output is full of them.
		parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), "\t")
		for i, part := range parts {
			parts[i] = hold.Escape(part)
		}
		b.WriteString(strings.Join(parts, "\t") + "\n")
	}
	return b.String()
}

// msec is a number of milliseconds, whatever somebody wrote there.
func msec(ms int64) time.Duration {
	return time.Duration(max(0, min(ms, int64(1<<62)/int64(time.Millisecond)))) * time.Millisecond
}
