package command

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// aPoint is what is accepted where a moment is.
const aPoint = `unix seconds, RFC 3339 such as 2027-03-14T07:00:00Z, or "2027-03-14 02:30" on the clocks of the job's time zone`

// wallLayouts are the times without a zone.
func wallLayouts() []string {
	return []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}
}

// point is a moment as it was typed: where it says no zone, it is on the clocks of the job's.
type point struct {
	at   time.Time
	wall bool
}

var errPoint = errors.New("want " + aPoint)

// Set reads one.
func (p *point) Set(s string) error {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 && n <= lastSecond {
		*p = point{at: time.Unix(n, 0)}
		return nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil && t.Unix() >= 0 {
		*p = point{at: t}
		return nil
	}
	for _, layout := range wallLayouts() {
		if t, err := time.Parse(layout, s); err == nil && t.Unix() >= 0 {
			*p = point{at: t, wall: true}
			return nil
		}
	}
	return errPoint
}

// lastSecond is the end of the year 9999, up to which there are ticks.
const lastSecond = 253402300799

func (p *point) String() string {
	if p.at.IsZero() {
		return ""
	}
	return stamp(p.at)
}

func (p *point) Type() string    { return "TIME" }
func (p *point) Accepts() string { return aPoint }

// in is the moment, where the job's clocks are those of a place.
func (p *point) in(where *time.Location) time.Time {
	if !p.wall {
		return p.at
	}
	t := p.at
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, where)
}

// startArg reads what names one start: an id, as ps and history print it.
func startArg(s string) (record.ID, error) {
	id, err := record.ParseID(s)
	if err != nil {
		return record.ID{}, cli.Usagef("%s: want an id as ps and history print it: a tick in unix seconds, and perhaps .<number> and @<host>", cli.Quote(s))
	}
	return id, nil
}

// named reports whether an argument is an id of more than a tick.
func ofOneStart(s string) bool {
	tick, _, more := strings.Cut(s, ".")
	if !more {
		tick, _, more = strings.Cut(s, "@")
	}
	_, err := strconv.ParseUint(tick, 10, 63)
	return more && err == nil
}

// nameAndRest reads a job's name and at most one argument more; "": there is none.
func nameAndRest(args []string, usage string) (name, rest string, err error) {
	switch {
	case len(args) == 0:
		return "", "", cli.Usagef("no job given: %s", usage)
	case len(args) > 2:
		return "", "", cli.Usagef("one more argument is accepted behind the job, got %s too", cli.Quote(args[2]))
	case len(args) == 2:
		rest = args[1]
	}
	return args[0], rest, hold.ValidName(args[0])
}
