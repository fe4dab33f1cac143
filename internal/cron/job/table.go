package job

import "time"

const dayLong = 24 * time.Hour

func (j *Job) fields() []field {
	return []field{
		expressions("schedule", &j.Schedule),
		flag("seconds", &j.Seconds),
		text("tz", &j.TZ, zoneName),
		choice("dst", &j.DST, dstModes...),
		span("jitter", &j.Jitter, time.Millisecond, 7*dayLong),
		moment("start_at", &j.StartAt),
		moment("end_at", &j.EndAt),

		texts("cmd", &j.Cmd, argText),
		text("script", &j.Script, someText),
		text("shell", &j.Shell, absolute),
		text("stdin", &j.Stdin, anyText),

		environment("env", &j.Env),
		flag("env_inherit", &j.EnvInherit),
		text("user", &j.User, userName),
		text("cwd", &j.Cwd, absolute),
		text("umask", &j.Umask, octalMask),

		choice("run_on", &j.RunOn, RunOnOne, RunOnAll),
		labels("select", &j.Select),
		choice("prefer", &j.Prefer, string(PreferSpread), string(PreferSticky), string(PreferAny)),

		choice("overlap", &j.Overlap, string(OverlapForbid), string(OverlapAllow), string(OverlapQueueOne), string(OverlapReplace)),
		span("start_deadline", &j.StartDeadline, time.Second, dayLong),
		catchup("catchup", &j.Catchup),
		span("run_ttl", &j.RunTTL, time.Millisecond, 30*dayLong),
		span("kill_after", &j.KillAfter, time.Millisecond, time.Hour),
		object("retry", &j.Retry),
		choice("on_lost", &j.OnLost, LostSkip, LostRetry),
		codes("success_codes", &j.SuccessCodes, 0),

		object("output", &j.Output),
		object("history", &j.History),

		labels("labels", &j.Labels),
		text("description", &j.Description, anyText),

		object("paused", &j.Paused),
		text("added_by", &j.AddedBy, anyText),
		moment("added_at", &j.AddedAt),
		moment("schedule_since", &j.ScheduleSince),
		moment("resumed_at", &j.ResumedAt),
	}
}

func (c *Catchup) fields() []field {
	return []field{
		choice("policy", &c.Policy, string(CatchupNone), string(CatchupLast), string(CatchupAll)),
		span("window", &c.Window, time.Second, 31*dayLong),
		count("max", &c.Max, 1, 1000),
	}
}

func (r *Retry) fields() []field {
	return []field{
		count("max", &r.Max, 1, 100),
		span("delay", &r.Delay, time.Millisecond, dayLong),
		factor("factor", &r.Factor, 1, 100),
		span("max_delay", &r.MaxDelay, time.Millisecond, dayLong),
		codes("exit_codes", &r.ExitCodes, 1),
		flag("other_node", &r.OtherNode),
	}
}

func (o *Output) fields() []field {
	return []field{
		size("keep", &o.Keep, 1, 64<<10),
		text("file", &o.File, absolute),
		size("file_size", &o.FileSize, 1<<10, 100<<30),
		count("file_count", &o.FileCount, 1, 100),
	}
}

func (h *History) fields() []field {
	return []field{
		count("ok", &h.OK, 1, 10000),
		count("failed", &h.Failed, 1, 10000),
		span("ttl", &h.TTL, time.Minute, 365*dayLong),
	}
}

func (p *Paused) fields() []field {
	return []field{
		text("by", &p.By, anyText),
		text("why", &p.Why, anyText),
		instant("at", &p.At),
		moment("until", &p.Until),
	}
}

// fields of the object that a variable may be.
func (v *EnvValue) fields() []field {
	return []field{text("file", &v.File, absolute)}
}
