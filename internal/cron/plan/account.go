package plan

import (
	"slices"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// What is what is known of a moment of a job.
type What string

// What there is. The first four have a record in etcd; the last seven are about a tick that has none.
const (
	Ended      What = "ended"       // its result stands
	Covered    What = "covered"     // a result stands that is about a range of ticks
	Running    What = "running"     // it was claimed, and nobody has said how it ended
	Waiting    What = "waiting"     // a request stands for it
	NoTick     What = "no_tick"     // the schedule has no tick there
	Outside    What = "outside"     // the schedule has, and start_at or end_at leave it out
	BeforeEdit What = "before_edit" // the schedule was another one
	Decided    What = "decided"     // at or below the cursor: its record has gone
	Paused     What = "paused"      // nothing is claimed as long as the pause lasts
	Resumed    What = "resumed"     // it came in a pause that is over, and will be recorded
	Future     What = "future"      // not due yet
	Due        What = "due"         // it may be started now
	Overdue    What = "overdue"     // its time has passed, and nobody has recorded that
	Unseen     What = "unseen"      // as Overdue, of a job that no node has decided anything about
)

// Account is what is known of one start, or of a tick that has none.
type Account struct {
	At   int64
	What What
	ID   record.ID // whose account it is: of NoTick, the moment
	// Due is when it is to be started, Until when it may be no longer; zero where it is no tick.
	Due, Until time.Time
	// Before and After are the nearest ticks, of NoTick, Outside and BeforeEdit; 0: there is none.
	Before, After int64
	Result        *record.Result // Ended, Covered
	Start         *Pictured      // Running; of Due: what is in the way
	Want          *PicturedWant  // Waiting
	Stop          record.Stop    // Paused: the pause
	Cluster       bool           // the pause is the cluster's, not the job's
	Nodes         []Judged       // what the nodes that are registered lack, as of now
}

// Judged is a node, and what keeps it from claiming starts of a job; nothing where it would.
type Judged struct {
	Host  string
	Lacks []string
}

// Inquiry is what an account is made of: a picture of one job, its spec, and the results about the moment.
type Inquiry struct {
	Picture *Picture
	Spec    *job.Job
	Job     Job
	Results []record.Result
	Now     time.Time
}

// About gives the accounts of a moment: one of each start that has to do with it, and one of the tick itself if there was none of it
// yet. There is at least one.
func (q *Inquiry) About(at int64) (all []Account) {
	all = q.records(func(id record.ID) bool { return id.Tick == at }, at)
	for _, host := range q.owners(all) {
		a := q.undecided(at, host)
		if len(all) == 0 || a.What != NoTick {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b Account) int { return a.ID.Compare(b.ID) })
	return all
}

// Of gives the account of one start, where anything is known of it.
func (q *Inquiry) Of(id record.ID) (Account, bool) {
	all := q.records(func(one record.ID) bool { return one == id }, id.Tick)
	if len(all) == 0 {
		return Account{}, false
	}
	return all[0], true
}

// records are the accounts of what etcd has a record of, each id once but that of a range.
func (q *Inquiry) records(meant func(record.ID) bool, at int64) (all []Account) {
	for i := range q.Results {
		r := &q.Results[i]
		id, _ := r.ID() // of its key
		switch {
		case r.Ticks > 0 && q.tick(at):
			all = append(all, Account{At: at, What: Covered, ID: id, Result: r})
		case r.Ticks == 0 && meant(id):
			all = append(all, Account{At: at, What: Ended, ID: id, Result: r})
		}
	}
	// The results may have been read later than the picture: what has ended since then is in both.
	over := func(id record.ID) bool {
		return slices.ContainsFunc(all, func(a Account) bool { return a.What == Ended && a.ID == id })
	}
	for i := range q.Picture.Starts {
		if s := &q.Picture.Starts[i]; meant(s.ID) && !over(s.ID) {
			all = append(all, Account{At: at, What: Running, ID: s.ID, Start: s})
		}
	}
	for i := range q.Picture.Asked {
		if w := &q.Picture.Asked[i]; meant(w.ID) && !over(w.ID) {
			all = append(all, Account{At: at, What: Waiting, ID: w.ID, Want: w, Nodes: q.nodes(w.ID.Host)})
		}
	}
	return all
}

// owners are the hosts whose claim the tick would be and that have no account of it yet; "" is all together.
func (q *Inquiry) owners(all []Account) (hosts []string) {
	known := func(host string) bool {
		return slices.ContainsFunc(all, func(a Account) bool { return a.ID.Host == host && !a.asked() })
	}
	if q.Job.OnAll {
		for i := range q.Picture.Peers {
			if p := &q.Picture.Peers[i]; p.Candidate(q.Spec) && !known(p.Host) {
				hosts = append(hosts, p.Host)
			}
		}
		if len(hosts) > 0 || len(all) > 0 {
			return hosts
		}
	}
	if known("") {
		return nil
	}
	return []string{""}
}

// asked reports whether it is the account of something that somebody asked for, beside the tick.
func (a *Account) asked() bool {
	var kind record.Kind
	switch a.What {
	case Ended:
		kind = a.Result.Kind
	case Running:
		kind = a.Start.Kind
	case Waiting:
		kind = a.Want.Kind
	}
	return a.ID.N > 0 && (kind == record.Manual || kind == record.Backfill)
}

// tick reports whether the schedule has a tick at a moment.
func (q *Inquiry) tick(at int64) bool {
	t, ok := q.Job.Schedule.Prev(time.Unix(at+1, 0))
	return ok && int64(t) == at
}

// undecided is the account of a tick of which etcd has no record, by what the cursor, the pauses and the clock say. A node decides by the
// same functions.
func (q *Inquiry) undecided(at int64, host string) Account {
	d := decision{job: &q.Job, state: &State{}, node: &Node{Host: host, Pause: q.Picture.Pause}, now: q.Now}
	cursor, moved := q.Picture.Cursors[host]
	a := Account{At: at, ID: record.ID{Tick: at, Host: host}, Due: d.due(at)}
	a.Until = a.Due.Add(d.deadline(at))
	switch {
	case !q.tick(at):
		a.What, a.Due, a.Until = NoTick, time.Time{}, time.Time{}
	case at < q.Job.From.Unix() && !q.Job.From.IsZero(), !d.within(schedule.Tick(at)):
		a.What = Outside
	case !q.Job.Since.IsZero() && at <= q.Job.Since.Unix():
		a.What = BeforeEdit
	case moved && at <= cursor.Tick:
		a.What = Decided
	case at <= d.resumed()/1000:
		a.What = Resumed
	default:
		q.open(&a, &d, host, moved)
	}
	if a.What == NoTick || a.What == Outside || a.What == BeforeEdit {
		a.Before, a.After = q.around(&d, at)
	}
	return a
}

// open is about a tick that nobody has decided.
func (q *Inquiry) open(a *Account, d *decision, host string, moved bool) {
	a.Nodes = q.nodes(host)
	stop, cluster, paused := q.pause(a.Due)
	switch {
	case paused:
		a.What, a.Stop, a.Cluster = Paused, stop, cluster
	case q.Now.Before(a.Due):
		a.What = Future
	case q.Now.Before(a.Until):
		a.What = Due
		for i := range q.Picture.Starts {
			if s := &q.Picture.Starts[i]; d.job.Overlap != Allow && s.ID.Host == host {
				a.Start = s
			}
		}
	case !moved && q.Job.Since.IsZero():
		a.What = Unseen
	default:
		a.What = Overdue
	}
}

// pause finds what is in force now and will be when a tick is due; of two the cluster's.
func (q *Inquiry) pause(due time.Time) (stop record.Stop, cluster, is bool) {
	for i, p := range []record.Stop{q.Picture.Pause, q.Job.Paused} {
		if p.By != "" && p.In(q.Now.UnixMilli()) && p.In(due.UnixMilli()) {
			return p, i == 0, true
		}
	}
	return record.Stop{}, false, false
}

// nodes are what the nodes lack; of a job that runs on all of them, the one whose claim it is.
func (q *Inquiry) nodes(host string) []Judged { return q.Picture.Judge(q.Spec, host) }

// Judge says of each node that is registered what it lacks; host, if not "", is the only one that is meant.
func (p *Picture) Judge(spec *job.Job, host string) (all []Judged) {
	zones := Zones(p.Peers)
	for i := range p.Peers {
		if one := &p.Peers[i]; host == "" || one.Host == host {
			all = append(all, Judged{Host: one.Host, Lacks: one.Lacks(spec, zones)})
		}
	}
	return all
}

// around are the ticks before and after a moment that count.
func (q *Inquiry) around(d *decision, at int64) (before, after int64) {
	after, _ = d.after(max(at, d.floor()))
	t, ok := q.Job.Schedule.Prev(time.Unix(at, 0))
	if to := q.Job.To; ok && !to.IsZero() && t.Time().After(to) {
		t, ok = q.Job.Schedule.Prev(to.Add(time.Second))
	}
	if ok && !t.Time().Before(q.Job.From) && t.Time().After(q.Job.Since) {
		before = int64(t)
	}
	return before, after
}

// Around are the last tick until now and the next one; 0: there is none.
func (q *Inquiry) Around() (last, next int64) {
	d := decision{job: &q.Job, state: &State{}, node: &Node{}, now: q.Now}
	last, _ = q.around(&d, q.Now.Unix()+1)
	next, _ = d.after(max(q.Now.Unix(), d.floor()))
	return last, next
}
