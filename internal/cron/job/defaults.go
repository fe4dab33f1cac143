package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

// What holds where a job says nothing.
const (
	defaultShell         = "/bin/sh"
	defaultDeadline      = 60 * time.Second // at most, and half the interval
	leastDeadline        = time.Second
	defaultRunTTL        = 10 * time.Minute
	defaultKillAfter     = 5 * time.Second
	defaultCatchupWindow = 24 * time.Hour
	defaultCatchupMax    = 100
	defaultRetryDelay    = 10 * time.Second
	defaultRetryFactor   = 2
	defaultRetryMaxDelay = 10 * time.Minute
	defaultKeep          = 16 << 10
	defaultFileSize      = 10 << 20
	defaultFileCount     = 5
	defaultHistory       = 50
	defaultHistoryTTL    = 72 * time.Hour
)

// Argv is what is executed: the command, or the shell with the script.
func (j *Job) Argv() (argv []string) {
	if len(j.Cmd) > 0 {
		return slices.Clone(j.Cmd)
	}
	return []string{cmp.Or(j.Shell, defaultShell), "-c", j.Script}
}

// Mask is the file mode mask that the job is run with; ok is false where it says none, and the daemon's own stays.
func (j *Job) Mask() (mask uint32, ok bool) {
	n, err := strconv.ParseUint(j.Umask, 8, 9)
	return uint32(n), err == nil
}

// Deadline is how long after a tick the job may still be started, where interval is the time from that tick to the next one; 0 if there
// is no next one. Default: half the interval, from 1s to 60s.
func (j *Job) Deadline(interval time.Duration) time.Duration {
	switch {
	case j.StartDeadline != 0:
		return time.Duration(j.StartDeadline)
	case interval <= 0:
		return defaultDeadline
	}
	return min(defaultDeadline, max(interval/2, leastDeadline))
}

// RunTime is how long a run may take before it is ended. Default: 10m.
func (j *Job) RunTime() time.Duration { return cmp.Or(time.Duration(j.RunTTL), defaultRunTTL) }

// Grace is how long a run that is ended has from SIGTERM to SIGKILL. Default: 5s.
func (j *Job) Grace() time.Duration { return cmp.Or(time.Duration(j.KillAfter), defaultKillAfter) }

// Overlaps is what happens at a tick while a run has not ended. Default: OverlapForbid.
func (j *Job) Overlaps() Overlap { return cmp.Or(Overlap(j.Overlap), OverlapForbid) }

// Preference is which node should run the job. Default: PreferSpread.
func (j *Job) Preference() Preference { return cmp.Or(Preference(j.Prefer), PreferSpread) }

// OnAll reports whether every node runs the job that may. Default: one of them.
func (j *Job) OnAll() bool { return j.RunOn == RunOnAll }

// Matches reports whether a node with these labels may run the job: it has all that are selected. Default: every node.
func (j *Job) Matches(labels map[string]string) bool {
	for name, value := range j.Select {
		if has, ok := labels[name]; !ok || has != value {
			return false
		}
	}
	return true
}

// Keep is how many bytes of the output's end stand in the result. Default: 16 KiB.
func (j *Job) Keep() int {
	if j.Output == nil {
		return defaultKeep
	}
	return int(cmp.Or(j.Output.Keep, defaultKeep))
}

// OutputFile is where on the node all output goes, how large that file may become, and how many old ones are kept; "" is nowhere.
// Defaults: 10 MiB and 5.
func (j *Job) OutputFile() (path string, size int64, count int) {
	if j.Output == nil || j.Output.File == "" {
		return "", 0, 0
	}
	return j.Output.File, int64(cmp.Or(j.Output.FileSize, defaultFileSize)), cmp.Or(j.Output.FileCount, defaultFileCount)
}

// HistoryLimits are how many results of successful runs and of all others are kept, and for how long. Defaults: 50, 50, 72h.
func (j *Job) HistoryLimits() (ok, failed int, ttl time.Duration) {
	h := cmp.Or(j.History, &History{})
	return cmp.Or(h.OK, defaultHistory), cmp.Or(h.Failed, defaultHistory), cmp.Or(time.Duration(h.TTL), defaultHistoryTTL)
}

// Succeeds reports whether a run that exited with this code was successful. Default: 0 alone. If the job lists codes, it is these and no
// others.
func (j *Job) Succeeds(code int) bool {
	if len(j.SuccessCodes) == 0 {
		return code == 0
	}
	return slices.Contains(j.SuccessCodes, code)
}

// Retries says whether a run that ended with this code is followed by another one, and after what delay. The first attempt is 1. A run that
// did not exit by itself, since a signal or its time ended it, has a negative code. Default: no retry; if there is one, after 10s, twice as
// long each time, 10m at most.
func (j *Job) Retries(attempt int, code int) (delay time.Duration, again bool) {
	r := j.Retry
	if r == nil || attempt > r.Max || j.Succeeds(code) || len(r.ExitCodes) > 0 && !slices.Contains(r.ExitCodes, code) {
		return 0, false
	}
	first := cmp.Or(time.Duration(r.Delay), defaultRetryDelay)
	most := cmp.Or(time.Duration(r.MaxDelay), max(first, defaultRetryMaxDelay))
	grown := float64(first) * math.Pow(cmp.Or(r.Factor, defaultRetryFactor), float64(attempt-1))
	if grown >= float64(most) {
		return most, true
	}
	return time.Duration(grown), true
}

// RetriesLost reports whether a run is repeated whose node died with it. Default: no.
func (j *Job) RetriesLost() bool { return j.OnLost == LostRetry }

// CatchUp is what to do about ticks that passed while no node was there. Defaults: none; if the last one is, of the last 24h; if all
// are, 100 at most.
func (j *Job) CatchUp() Catchup {
	if j.Catchup == nil || j.Catchup.Policy == CatchupNone {
		return Catchup{Policy: CatchupNone}
	}
	c := *j.Catchup
	c.Window = cmp.Or(c.Window, Duration(defaultCatchupWindow))
	if c.Policy == CatchupLast {
		c.Max = 1
	}
	c.Max = cmp.Or(c.Max, defaultCatchupMax)
	return c
}

// PausedAt reports whether the job is paused at a moment. A pause has an end, or none. Its beginning is not looked at: whoever sees it has to
// obey it, however the clocks of two nodes differ.
func (j *Job) PausedAt(now time.Time) bool {
	return j.Paused != nil && (j.Paused.Until == nil || now.Before(*j.Paused.Until))
}

// Shift is how much later than its ticks the job of that name is due: a part of its jitter, in whole milliseconds, the same one at each
// tick and on each node. It is what H is made of, with "jitter" as the field: the first eight bytes of a SHA-256, modulo the
// jitter.
func (j *Job) Shift(name string) time.Duration {
	steps := uint64(time.Duration(j.Jitter) / time.Millisecond)
	if steps == 0 {
		return 0
	}
	sum := sha256.Sum256([]byte("jitter\x00" + name))
	return time.Duration(binary.BigEndian.Uint64(sum[:8])%steps) * time.Millisecond
}

// ScheduleDiffers reports whether the ticks of j are others than those of o, or are made differently: then whoever edits o into j sets
// ScheduleSince, so that no tick of the past becomes due. It is true where there is no o.
func (j *Job) ScheduleDiffers(o *Job) bool {
	return o == nil || !slices.Equal(j.Schedule, o.Schedule) || j.Seconds != o.Seconds ||
		cmp.Or(j.TZ, "UTC") != cmp.Or(o.TZ, "UTC") ||
		cmp.Or(j.DST, string(schedule.DSTCron)) != cmp.Or(o.DST, string(schedule.DSTCron)) ||
		j.Jitter != o.Jitter || !sameTime(j.StartAt, o.StartAt) || !sameTime(j.EndAt, o.EndAt)
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
