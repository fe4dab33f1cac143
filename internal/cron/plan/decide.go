package plan

import (
	"hash/fnv"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
)

const (
	// spreadOver is the longest time that a node leaves to others before it claims, where nothing asks for less.
	spreadOver = 200 * time.Millisecond
	// stickFor is how long the others leave a tick to the last node.
	stickFor = 300 * time.Millisecond
	// missedOver spreads the records of what was missed: that is in no hurry.
	missedOver = 500 * time.Millisecond
	// elsewhereFor is how long a node leaves a request to others that should rather meet it.
	elsewhereFor = 10 * time.Second
	// LateAfter is from when on a start is called late.
	LateAfter = time.Second
)

// Next says what the node does next about a job, as of now.
func Next(j *Job, s *State, n *Node, now time.Time) Act {
	if n.ReadOnly {
		return Act{}
	}
	if n.Fit {
		return (&decision{job: j, state: s, node: n, now: now}).next()
	}
	// It could only say that it is too late. Another clock, that is behind, may belong to a node that is about to start.
	a := (&decision{job: j, state: s, node: n, now: now.Add(-n.Slack)}).next()
	if !a.At.IsZero() {
		a.At = a.At.Add(n.Slack)
	}
	return a
}

type decision struct {
	job   *Job
	state *State
	node  *Node
	now   time.Time
}

func (d *decision) next() Act { return sooner(d.lost(), sooner(d.wanted(), d.tick())) }

// host is what the ids of this node's claims end in.
func (d *decision) host() string {
	if d.job.OnAll {
		return d.node.Host
	}
	return ""
}

// open gives a run that is in the way of another one; nil: there is none. Of a job that runs on all hosts only those of
// this host are.
func (d *decision) open() *Open {
	for i := range d.state.Opens {
		if o := d.state.Opens[i]; o.ID.Host == d.host() {
			return &o
		}
	}
	return nil
}

// paused reports whether job or cluster is, and when that ends by itself; zero: not.
func (d *decision) paused() (bool, time.Time) {
	var until int64
	in := false
	for _, p := range []record.Stop{d.job.Paused, d.node.Pause} {
		if p.By != "" && p.In(d.now.UnixMilli()) {
			in = true
			if p.Until == 0 {
				return true, time.Time{}
			}
			until = max(until, p.Until)
		}
	}
	return in, time.UnixMilli(until)
}

// resumed is the end of the last pause, in unix milliseconds; 0: there was none.
func (d *decision) resumed() int64 {
	var at int64
	for _, p := range []record.Stop{d.job.Paused, d.node.Pause} {
		if p.By != "" && !p.In(d.now.UnixMilli()) {
			at = max(at, p.End())
		}
	}
	return at
}

// lost closes what nobody can be running any more. A marker can go early (a revoked lease, a deleted key), with its child
// alive until its own deadline: so the whole TTL is waited for, from when this node first knew of it.
func (d *decision) lost() Act {
	var first Act
	for i := range d.state.Opens {
		o := d.state.Opens[i]
		if o.Alive {
			continue
		}
		left := o.Gone + time.Duration(o.TTL)*time.Millisecond - d.node.Mono
		first = sooner(first, Act{
			Verb: Close, At: d.now.Add(left + d.moment(o.ID.Tick, missedOver)), ID: o.ID, Open: &o, Kind: o.Kind, Attempt: o.Attempt,
			Status: record.Lost, Reason: record.ReasonNode,
		})
	}
	return first
}

// wanted is the first request that can be met, or has to be given up.
func (d *decision) wanted() Act {
	var first Act
	if in, until := d.paused(); in {
		if until.IsZero() {
			return first
		}
		return Act{At: until}
	}
	for i := range d.state.Wants {
		w := d.state.Wants[i]
		if w.ID.Host == "" || w.ID.Host == d.node.Host {
			first = sooner(first, d.want(&w))
		}
	}
	return first
}

func (d *decision) want(w *Want) Act {
	from := time.UnixMilli(w.After)
	if w.After == 0 {
		from = time.Unix(w.ID.Tick, 0)
	}
	a := Act{
		Verb: Run, ID: w.ID, Kind: w.Kind, Attempt: w.Attempt, Want: w, Alone: d.job.Overlap != Allow, Due: from,
		At: from.Add(d.moment(w.ID.Tick, spreadOver)),
	}
	if w.Until != 0 {
		a.By = time.UnixMilli(w.Until)
		if !d.now.Before(a.By) {
			a.Verb, a.Status, a.Reason = Abandon, record.Missed, d.node.Absent()
			a.At = a.By.Add(d.moment(w.ID.Tick, missedOver))
			return a
		}
	}
	if !d.node.Fit || a.Alone && d.open() != nil {
		return Act{At: a.By}
	}
	if w.Not == d.node.Host && d.node.Others() {
		a.At = a.At.Add(elsewhereFor)
	}
	return a
}

// moment is this node's own share of a time span, for a tick: the same whenever it is asked for.
func (d *decision) moment(tick int64, over time.Duration) time.Duration {
	h := fnv.New64a()
	var b [8]byte
	for i := range b {
		b[i] = byte(tick >> (8 * i))
	}
	_, _ = h.Write(b[:]) // a hash takes everything
	_, _ = h.Write([]byte(d.job.Name))
	_, _ = h.Write([]byte{'/'})
	_, _ = h.Write([]byte(d.node.Host))
	// The low bits of FNV depend on the last bytes alone; the product spreads all of them upwards.
	return time.Duration((h.Sum64() * 0x9e3779b97f4a7c15 >> 33) % uint64(max(over, 1)))
}

// delay is how long this node leaves a tick to others.
func (d *decision) delay(tick int64, deadline time.Duration) time.Duration {
	over := min(spreadOver, deadline/4)
	switch {
	case d.job.OnAll || d.job.Prefer == Any:
		return 0
	case d.job.Prefer == Sticky && d.state.Cursor.Host == d.node.Host:
		return 0
	case d.job.Prefer == Sticky:
		return min(stickFor, deadline/4) + d.moment(tick, over)
	}
	return d.moment(tick, over)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
