package cron

import (
	"log/slog"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// learn takes in what is at a key; nil: nothing any more. What cannot be read is not there.
func (n *node) learn(prefix, key string, kv *mvccpb.KeyValue) {
	switch {
	case prefix == record.Jobs:
		n.learnJob(key, kv)
	case prefix == record.Cursors:
		n.learnCursor(key, kv)
	case prefix == record.Runs:
		n.learnRun(key, kv)
	case prefix == record.Nodes:
		n.learnNode(key, kv)
	case key == record.Pause:
		n.learnPause(kv)
	case strings.HasPrefix(key, record.Opens):
		n.learnOpen(key, kv)
	case strings.HasPrefix(key, record.Wants):
		n.learnWant(key, kv)
	case strings.HasPrefix(key, record.Kills):
		n.learnKill(key, kv)
	case strings.HasPrefix(key, record.Cards):
		n.learnCard(key, kv)
	case strings.HasPrefix(key, record.Drains):
		n.learnDrain(key, kv)
	}
}

// entry finds or makes what is known of a job.
func (n *node) entry(name string) *entry {
	e := n.jobs[name]
	if e == nil {
		e = &entry{name: name, place: -1, cursors: map[string]at{}}
		e.removed()
		n.jobs[name] = e
	}
	return e
}

// changed has a job looked at of which something was learned, once all is taken in that is said at the moment.
func (n *node) changed(e *entry) {
	if e.empty() && !e.ready {
		n.agenda.set(e, time.Time{})
		delete(n.lazy, e)
		delete(n.jobs, e.name)
		return
	}
	e.shy, e.losses = time.Time{}, 0
	if !e.stirred {
		e.stirred = true
		n.stirred = append(n.stirred, e)
	}
}

func (n *node) learnJob(key string, kv *mvccpb.KeyValue) {
	name, err := record.ParseName(record.Jobs, key)
	if err != nil {
		return
	}
	e := n.entry(name)
	switch {
	case kv == nil:
		e.removed()
	case kv.ModRevision != e.job.Rev:
		if err := e.read(kv.Value, kv.ModRevision, n.zones, n.Now()); err != nil {
			n.Logger.Warn("job cannot be read here", slog.String("job", name), slog.String("reason", hold.EscapeCut(err.Error(), 300)))
		}
	}
	n.changed(e)
}

func (n *node) learnCursor(key string, kv *mvccpb.KeyValue) {
	name, host, err := record.ParseCursor(key)
	if err != nil || host != "" && host != n.Host {
		return
	}
	e := n.entry(name)
	if kv == nil {
		delete(e.cursors, host)
	} else if c, ok := record.Decode[record.Cursor](kv.Value); kv.ModRevision > e.cursors[host].rev {
		if !ok {
			// Nobody knows what was decided. What is over by now is not decided once more.
			c = record.Cursor{Tick: max(e.cursors[host].Tick, n.Now().Unix())}
			n.Logger.Warn("cursor cannot be read: ticks until now count as decided", slog.String("job", name))
		}
		e.cursors[host] = at{c, kv.ModRevision}
	}
	n.changed(e)
}

func (n *node) learnRun(key string, kv *mvccpb.KeyValue) {
	name, id, err := record.ParseKey(record.Runs, key)
	if err != nil {
		return
	}
	run := runID(name, id)
	if kv != nil {
		n.runs[run] = true
	} else {
		delete(n.runs, run)
		if r := n.running[run]; r != nil {
			r.lose(errMarker)
		}
	}
	if e := n.jobs[name]; e != nil {
		n.changed(e)
	}
}

func (n *node) learnOpen(key string, kv *mvccpb.KeyValue) {
	name, id, err := record.ParseOpen(key)
	if err != nil {
		return
	}
	e := n.entry(name)
	if kv == nil {
		e.close(id)
	} else if e.open(id) == nil {
		o, _ := record.Decode[record.Open](kv.Value)
		e.state.Opens = append(e.state.Opens, plan.Open{Open: o, ID: id, Rev: kv.CreateRevision, Alive: true})
	}
	n.changed(e)
}

func (n *node) learnWant(key string, kv *mvccpb.KeyValue) {
	name, id, err := record.ParseKey(record.Wants, key)
	if err != nil {
		return
	}
	e := n.entry(name)
	e.unwant(id)
	if kv != nil {
		if w, ok := record.Decode[record.Want](kv.Value); ok {
			e.state.Wants = append(e.state.Wants, plan.Want{Want: w, ID: id, Rev: kv.ModRevision})
		}
	}
	n.changed(e)
}

func (n *node) learnKill(key string, kv *mvccpb.KeyValue) {
	name, id, err := record.ParseKey(record.Kills, key)
	if err != nil {
		return
	}
	run := runID(name, id)
	if kv == nil {
		delete(n.kills, run)
		return
	}
	k, _ := record.Decode[record.Kill](kv.Value)
	n.kills[run] = k
	if r := n.running[run]; r != nil {
		r.kill(k)
	}
}

func (n *node) learnPause(kv *mvccpb.KeyValue) {
	n.pause, n.pauseRev = record.Stop{}, 0
	if kv != nil {
		n.pause, _ = record.Decode[record.Stop](kv.Value)
		n.pauseRev = kv.ModRevision
		if n.pause.By == "" {
			n.pause.By = "?" // there is a pause, whoever wrote it
		}
	}
	n.everything()
}

func (n *node) learnDrain(key string, kv *mvccpb.KeyValue) {
	host, err := record.ParseName(record.Drains, key)
	if err != nil {
		return
	}
	if kv == nil {
		delete(n.drains, host)
	} else {
		n.drains[host] = true
	}
	if host == n.Host {
		n.card()
		n.everything()
	}
}
