package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
)

// accountLine is an account as a program reads it.
type accountLine struct {
	Job    string         `json:"job"`
	At     int64          `json:"at"`
	What   plan.What      `json:"what"`
	ID     string         `json:"id"`
	Due    string         `json:"due"`    // "": it is no tick
	Until  string         `json:"until"`  // when it may no longer be started
	Before int64          `json:"before"` // the nearest tick, where there is none; 0: none
	After  int64          `json:"after"`
	Result *record.Result `json:"result"` // null: there is none
	Run    *runLine       `json:"run"`    // what runs or waits; of a tick that is due: what is in its way
	Stop   *record.Stop   `json:"pause"`
	Nodes  []nodeLack     `json:"nodes"`
}

// nodeLack is what keeps a node from claiming.
type nodeLack struct {
	Host  string   `json:"host"`
	Lacks []string `json:"lacks"` // empty: nothing
}

func accountOf(name string, a *plan.Account) accountLine {
	l := accountLine{Job: name, At: a.At, What: a.What, ID: a.ID.String(), Before: a.Before, After: a.After, Result: a.Result, Nodes: []nodeLack{}}
	if !a.Due.IsZero() {
		l.Due, l.Until = stamp(a.Due), stamp(a.Until)
	}
	var is plan.Picture
	if a.Start != nil {
		is.Starts = []plan.Pictured{*a.Start}
	}
	if a.Want != nil {
		is.Asked = []plan.PicturedWant{*a.Want}
	}
	for _, run := range runLines(&is) {
		l.Run = &run
	}
	if a.What == plan.Paused {
		l.Stop = &a.Stop
	}
	for _, n := range a.Nodes {
		l.Nodes = append(l.Nodes, nodeLack{Host: n.Host, Lacks: append([]string{}, n.Lacks...)})
	}
	return l
}

// telling puts an account into words. All of it is safe on a terminal, whatever stands in etcd.
type telling struct {
	*pictured
	*plan.Account
	now time.Time
}

// text is the account: one line, and one more for each node where nodes matter.
func (t *telling) text() string {
	head := t.name + "/" + t.ID.String() + " (" + strings.TrimPrefix(tickText(t.At, t.where), fmt.Sprintf("%d (", t.At))
	return head + ": " + t.words() + "\n" + t.nodesText()
}

func (t *telling) words() string {
	switch t.What {
	case plan.Ended:
		return endingText(t.Result)
	case plan.Covered:
		return "one of the ticks of a record: " + endingText(t.Result)
	case plan.Running:
		return t.runningText()
	case plan.Waiting:
		return t.waitingText()
	case plan.NoTick:
		return "not a tick of this schedule; " + t.nearText()
	case plan.Outside:
		return "left out by start_at or end_at; " + t.nearText()
	case plan.BeforeEdit:
		return "no tick: the schedule is as it is since " + stamp(t.job.Since) + "; " + t.nearText()
	case plan.Decided:
		return "decided, and its record has gone: the job keeps a number of results, each for a time (history)"
	case plan.Paused:
		return t.pausedText()
	case plan.Resumed:
		return "it came while the job or the cluster was paused: a node will record it as skipped, and run nothing"
	case plan.Future:
		return "due in " + brief(t.Due.Sub(t.now).Truncate(time.Second)) + "; " + t.whoText("will be run by")
	case plan.Due:
		return t.dueText()
	case plan.Unseen:
		return "its time has passed, and no node has decided anything about this job yet: ticks count from when a node first saw it"
	}
	return "its time has passed, and nobody has recorded that yet; " + t.whoText("up to")
}

func (t *telling) runningText() string {
	s := t.Start
	text := "claimed by " + shown(s.Host) + " " + brief(t.now.Sub(time.UnixMilli(s.At)).Truncate(time.Second)) + " ago"
	switch stateOf(s) {
	case stateEnding:
		text += ", and asked to end by " + shown(killerOf(s.Kill))
	case stateSettling:
		return text + "; its run marker is gone, and nobody has said how it ended: a node will settle it " + brief(msec(s.TTL)) + " after it noticed"
	default:
		text += ", and still running"
	}
	if s.By != "" {
		text += "; asked for by " + shown(s.By)
	}
	return text
}

func (t *telling) waitingText() string {
	w := t.Want
	text := "waits to be started (" + shown(string(w.Kind)) + ")"
	if after := time.UnixMilli(w.After); after.After(t.now) {
		text += ", not before " + stamp(after)
	}
	if w.Until > 0 {
		text += ", recorded as missed after " + stamp(time.UnixMilli(w.Until))
	}
	if w.By != "" {
		text += "; asked for by " + shown(w.By)
	}
	if err := t.inPause(t.now); err != nil {
		text += "; " + err.Error()
	}
	return text + "; " + t.whoText("up to")
}

func (t *telling) pausedText() string {
	what := "the job is paused "
	if t.Cluster {
		what = "all jobs are paused "
	}
	if t.now.Before(t.Due) {
		return "due in " + brief(t.Due.Sub(t.now).Truncate(time.Second)) + ", and not to be started: " + what + stopText(t.Stop)
	}
	return "not started, and to be recorded as skipped when the pause ends: " + what + stopText(t.Stop)
}

func (t *telling) dueText() string {
	text := "due since " + brief(t.now.Sub(t.Due).Truncate(time.Second)) + ", and waiting until " + stamp(t.Until) + "; "
	if t.Start != nil {
		text += "a run is in its way: " + t.Start.ID.String() + " on " + shown(t.Start.Host) + "; "
	}
	return text + t.whoText("up to")
}

// nearText says the nearest ticks.
func (t *telling) nearText() string {
	near := func(what string, tick int64) string {
		if tick == 0 {
			return "no tick " + what
		}
		return "the nearest " + what + " is " + tickText(tick, t.where)
	}
	return near("before", t.Before) + "; " + near("after", t.After)
}

// whoText says which nodes would claim it.
func (t *telling) whoText(verb string) string {
	var able []string
	for _, n := range t.Nodes {
		if len(n.Lacks) == 0 {
			able = append(able, shown(n.Host))
		}
	}
	switch {
	case len(t.Nodes) == 0:
		return "no node is registered"
	case len(able) == 0:
		return "no node would claim it, as of now"
	case len(able) == 1:
		return verb + " " + able[0]
	case len(able) > nameMost:
		return verb + " one of " + strings.Join(able[:nameMost], ", ") + fmt.Sprintf(" and %d more", len(able)-nameMost)
	}
	return verb + " one of " + strings.Join(able, ", ")
}

// nodesText lists what the nodes lack that would not claim it.
func (t *telling) nodesText() string {
	var b strings.Builder
	for _, n := range t.Nodes {
		if len(n.Lacks) == 0 {
			continue
		}
		var lacks []string
		for _, one := range n.Lacks {
			lacks = append(lacks, shown(one))
		}
		fmt.Fprintf(&b, "  %s %s\n", shown(n.Host), strings.Join(lacks, "; "))
	}
	return b.String()
}
