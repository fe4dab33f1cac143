package view

import (
	"slices"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// Line is a seat, or that there is none, as a program reads it: one object of the JSON of --who, --watch and conch status.
// The names are public. Texts are as they were written, so whoever prints them escapes them; but Value is escaped and cut.
type Line struct {
	Kind      string    `json:"kind"`
	Name      string    `json:"name"`
	Max       *int      `json:"max"`  // of a semaphore; null
	Slot      *int      `json:"slot"` // of a semaphore; null
	State     State     `json:"state"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Started   string    `json:"started"`
	Cmd       string    `json:"cmd"`
	Rev       uint64    `json:"rev"`   // the fencing token of who holds
	Lease     string    `json:"lease"` // "": on none
	TTLLeft   int64     `json:"ttl_left_ms"`
	Position  int       `json:"position"`            // in the queue: 0 leads; -1: in none
	Since     string    `json:"since,omitempty"`     // when it began to hold, or is up, by its own clock
	Unsettled *OpenLine `json:"unsettled,omitempty"` // the earlier hold that it, or the next holder, waits for
	Value     string    `json:"value,omitempty"`     // of a key that is no holder of ours; of state odd, the key
	At        string    `json:"at,omitempty"`        // of a change: when it was seen
	Last      *LastLine `json:"last,omitempty"`      // how the hold before it ended
	Reason    string    `json:"reason,omitempty"`    // of a host that is down
	Run       *RunLine  `json:"run,omitempty"`       // of a start of a job
	Pause     *StopLine `json:"pause,omitempty"`     // of a job that is paused, or, without a name, of the cluster
}

// OpenLine is the JSON of an open record that makes the next holder settle.
type OpenLine struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Cmd   string `json:"cmd"`
	Lease string `json:"lease"`  // "": the record cannot be read
	TTLMS int64  `json:"ttl_ms"` // how long the next holder waits at most; 0: its own ttl
	At    string `json:"at"`
	Value string `json:"value,omitempty"`
}

// LastLine is the JSON of a hold that is over.
type LastLine struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Cmd   string `json:"cmd"`
	Rev   uint64 `json:"rev"`
	How   string `json:"how"` // "": nobody has said
	At    string `json:"at"`
	Value string `json:"value,omitempty"`
}

// RunLine is the JSON of what a start of a job has beside that.
type RunLine struct {
	ID      string `json:"id"`
	Tick    string `json:"tick"` // when it was due
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
	By      string `json:"by,omitempty"` // who asked for it, and why
}

// StopLine is the JSON of a pause.
type StopLine struct {
	By    string `json:"by"`
	Why   string `json:"why,omitempty"`
	At    string `json:"at,omitempty"`
	Until string `json:"until,omitempty"` // "": until somebody ends it
}

// Line is a seat of that name.
func (n Name) Line(s Seat) Line {
	l := Line{
		Kind: n.Kind, Name: n.Name, State: s.State, Rev: s.Token, Lease: lease(s.Lease), TTLLeft: left(s.Left),
		Position: s.Position, Since: moment(s.Since), Unsettled: openLine(s.Unsettled), Last: lastLine(s.Last),
	}
	l.Host, l.PID, l.Cmd, l.Value = holder(s.Holder)
	if Known(s.Holder) {
		l.Started = s.Holder.Started.Format(time.RFC3339)
	}
	l.at(s.Max, s.Slot)
	return l
}

// Lines are a line for each seat, for each vacancy that there is something to tell of, and for each odd key.
func (s Standing) Lines() (all []Line) {
	for _, seat := range slices.Concat(s.Seats, s.Vacancies()) {
		all = append(all, s.Line(seat))
	}
	for _, e := range s.Odd {
		all = append(all, Line{Kind: s.Kind, Name: s.Name.Name, State: Odd, Rev: uint64(e.Create), Lease: lease(e.Lease),
			TTLLeft: left(Unknown), Position: -1, Value: hold.EscapeCut(e.Key, oddLimit)})
	}
	return all
}

// oddLimit is how much of an odd key is shown, in bytes.
const oddLimit = 256

func (l *Line) at(max, slot int) {
	if max > 0 {
		l.Max = &max
	}
	if slot >= 0 {
		l.Slot = &slot
	}
}

func openLine(o *Open) *OpenLine {
	switch {
	case o == nil:
		return nil
	case o.Lease == 0:
		return &OpenLine{}
	}
	l := &OpenLine{Lease: lease(o.Lease), TTLMS: o.TTL.Milliseconds(), At: moment(o.At)}
	l.Host, l.PID, l.Cmd, l.Value = holder(o.Holder)
	return l
}

// howLimit is more bytes than any word for an end of ours has.
const howLimit = 20

func lastLine(l *Last) *LastLine {
	if l == nil {
		return nil
	}
	e := &LastLine{Rev: l.Token, How: string(l.How), At: moment(l.At)}
	if len(e.How) > howLimit {
		e.How = hold.EscapeCut(e.How, howLimit)
	}
	e.Host, e.PID, e.Cmd, e.Value = holder(l.Holder)
	return e
}

// holder are the parts of a holder as JSON has them; value where it is none of ours, escaped.
func holder(h hold.Holder) (host string, pid int, cmd, value string) {
	if !Known(h) {
		return "", 0, "", h.String()
	}
	return h.Host, h.PID, h.Cmd, ""
}

// moment is a time as JSON has it; nothing for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func lease(id int64) string {
	if id == 0 {
		return ""
	}
	return hold.FormatLease(id)
}

// left is what a lease has left, in milliseconds; -1: not known.
func left(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}
