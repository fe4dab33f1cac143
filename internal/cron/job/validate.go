package job

import (
	"fmt"
	"strings"

	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// Validate says whether the job can be meant, under that name. The error wraps ErrSpec and is one line, safe to print. It looks at
// no clock: whether a tick is still to come is for schedule.Schedule.Check.
func (j *Job) Validate(name string) error { return j.validate(name, nil) }

func (j *Job) validate(name string, zones *schedule.Zones) error {
	if err := hold.ValidName(name); err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if err := check("", j); err != nil {
		return err
	}
	if _, err := j.Plan(name, zones); err != nil {
		return err
	}
	if n := len(j.Encode()); n > MaxSize {
		return tooLarge(n)
	}
	return nil
}

// Plan reads the schedule of the job of that name. Zones may be nil: then they are opened, if the job has one.
func (j *Job) Plan(name string, zones *schedule.Zones) (*schedule.Schedule, error) {
	o := schedule.Options{Seconds: j.Seconds, DST: schedule.DST(j.DST), Name: name}
	if j.TZ != "" {
		var err error
		if zones == nil {
			if zones, err = schedule.OpenZones(); err != nil {
				return nil, named("tz", err, schedule.ErrZone)
			}
		}
		if o.Zone, err = zones.Load(j.TZ); err != nil {
			return nil, named("tz", err, schedule.ErrZone)
		}
	}
	s, err := schedule.Parse(o, j.Schedule...)
	if err != nil {
		return nil, named("schedule", err, schedule.ErrSpec)
	}
	return s, nil
}

// named makes an error of package schedule one about a field. What it says of its kind is left out: the field says it.
func named(at string, err, kind error) error {
	return fmt.Errorf("%w: %s: %s", ErrSpec, at, strings.TrimPrefix(err.Error(), kind.Error()+": "))
}

func (j *Job) whole(string) error {
	switch {
	case len(j.Cmd) > 0 && j.Script != "":
		return fmt.Errorf("%w: cmd and script: both are given: want one of them", ErrSpec)
	case len(j.Cmd) == 0 && j.Script == "":
		return fmt.Errorf("%w: cmd: is missing: want a command as a list of texts, or a script", ErrSpec)
	case len(j.Cmd) > 0 && j.Cmd[0] == "":
		return refuse("cmd[0]", `""`, "the name or the path of a program")
	case len(j.Cmd) > 0 && j.Shell != "":
		return refuse("shell", quote(j.Shell), "no shell beside cmd: it is for a script")
	case j.StartAt != nil && j.EndAt != nil && !j.EndAt.After(*j.StartAt):
		return refuse("end_at", quote(formatTime(*j.EndAt)), "a time after start_at, "+formatTime(*j.StartAt))
	case j.OnAll() && j.Prefer != "":
		return refuse("prefer", quote(j.Prefer), "no preference with run_on all: every node runs it")
	case j.OnAll() && j.Retry != nil && j.Retry.OtherNode:
		return refuse("retry.other_node", "true", "false with run_on all: every node has a run of its own")
	}
	return nil
}

func (c *Catchup) whole(at string) error {
	switch {
	case c.Policy == "":
		return fmt.Errorf("%w: %s.policy: is missing: want none, last or all", ErrSpec, at)
	case c.Policy == CatchupAll && c.Window == 0:
		return fmt.Errorf("%w: %s.window: is missing: want how long ago a tick may have been, such as 6h, with policy all", ErrSpec, at)
	case c.Policy != CatchupAll && c.Max != 0:
		return refuse(at+".max", fmt.Sprint(c.Max), "no max with policy "+string(c.Policy)+": it is for all")
	case c.Policy == CatchupNone && c.Window != 0:
		return refuse(at+".window", c.Window.String(), "no window with policy none: nothing is caught up with")
	}
	return nil
}

func (r *Retry) whole(at string) error {
	switch {
	case r.Max == 0:
		return fmt.Errorf("%w: %s.max: is missing: want a whole number from 1 to 100", ErrSpec, at)
	case r.Delay != 0 && r.MaxDelay != 0 && r.MaxDelay < r.Delay:
		return refuse(at+".max_delay", r.MaxDelay.String(), "a duration no shorter than delay, "+r.Delay.String())
	}
	return nil
}

func (o *Output) whole(at string) error {
	switch {
	case o.File == "" && o.FileSize != 0:
		return refuse(at+".file_size", o.FileSize.String(), "a file beside it")
	case o.File == "" && o.FileCount != 0:
		return refuse(at+".file_count", fmt.Sprint(o.FileCount), "a file beside it")
	}
	return nil
}

func (h *History) whole(string) error { return nil }

func (p *Paused) whole(string) error { return nil }

func (v *EnvValue) whole(at string) error {
	switch {
	case v.Value != "" && v.File != "":
		return fmt.Errorf("%w: %s: a value and a file are given: want one of them", ErrSpec, at)
	case !argument(v.Value):
		// The value may be a secret, so it is not shown.
		return fmt.Errorf("%w: %s: want %s", ErrSpec, at, argText.want)
	}
	return nil
}
