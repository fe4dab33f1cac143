package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
)

// LookAreas are what Look reads: keys, and prefixes that end in a slash. job "" is all of them.
func LookAreas(job string) []string {
	shared := []string{record.Pause, record.Nodes, record.Cards, record.Drains}
	if job == "" {
		return append(shared, record.Opens, record.Runs, record.Wants, record.Kills)
	}
	// The cursors and open records of single hosts have the host behind the job's name.
	return append(shared, record.JobKey(job), record.Cursors+job, record.Cursors+job+"@",
		record.Opens+job+"/", record.Opens+job+"@", record.Range(record.Runs, job), record.Range(record.Wants, job), record.Range(record.Kills, job))
}

// Look reads, linearizably and at one revision, what there is of a job, or of all jobs where job is "", and of the nodes. What cannot be
// read is not there.
func Look(ctx context.Context, client *clientv3.Client, job string) (*plan.Picture, error) {
	var ops []clientv3.Op
	for _, key := range LookAreas(job) {
		if strings.HasSuffix(key, "/") || strings.HasSuffix(key, "@") {
			ops = append(ops, clientv3.OpGet(key, clientv3.WithPrefix()))
		} else {
			ops = append(ops, clientv3.OpGet(key))
		}
	}
	got, err := client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	l := looking{
		Picture: &plan.Picture{Rev: got.Header.Revision, Cursors: map[string]record.Cursor{}, Drains: map[string]record.Stop{}},
		alive:   map[string]bool{}, kills: map[string]record.Kill{}, cards: map[string]record.Card{},
	}
	for _, answer := range got.Responses {
		for _, kv := range answer.GetResponseRange().Kvs {
			l.see(string(kv.Key), kv)
		}
	}
	return l.whole(), nil
}

// looking is a picture in the making.
type looking struct {
	*plan.Picture
	alive map[string]bool // run markers, by run id
	kills map[string]record.Kill
	cards map[string]record.Card
}

// see takes in one key.
func (l *looking) see(key string, kv *mvccpb.KeyValue) {
	switch {
	case key == record.Pause:
		l.Pause, _ = record.Decode[record.Stop](kv.Value)
		l.PauseRev = kv.ModRevision
		l.Pause.By = cmp.Or(l.Pause.By, "?") // there is a pause, whoever wrote it
	case strings.HasPrefix(key, record.Jobs):
		l.Spec, l.SpecRev = kv.Value, kv.ModRevision
	case strings.HasPrefix(key, record.Cursors):
		if _, host, err := record.ParseCursor(key); err == nil {
			l.Cursors[host], _ = record.Decode[record.Cursor](kv.Value)
		}
	case strings.HasPrefix(key, record.Nodes):
		if host, err := record.ParseName(record.Nodes, key); err == nil {
			m, _ := record.Decode[coord.HostMetadata](kv.Value)
			l.Peers = append(l.Peers, plan.Peer{Host: host, Rev: kv.CreateRevision, Version: m.Version, Labels: m.Labels})
		}
	case strings.HasPrefix(key, record.Cards):
		host, err := record.ParseName(record.Cards, key)
		if c, ok := record.Decode[record.Card](kv.Value); ok && err == nil {
			l.cards[host] = c
		}
	case strings.HasPrefix(key, record.Drains):
		if host, err := record.ParseName(record.Drains, key); err == nil {
			l.Drains[host], _ = record.Decode[record.Stop](kv.Value)
		}
	default:
		l.start(key, kv)
	}
}

// start takes in a key of one start.
func (l *looking) start(key string, kv *mvccpb.KeyValue) {
	switch {
	case strings.HasPrefix(key, record.Opens):
		if job, id, err := record.ParseOpen(key); err == nil {
			o, _ := record.Decode[record.Open](kv.Value)
			l.Starts = append(l.Starts, plan.Pictured{Job: job, Open: plan.Open{Open: o, ID: id, Rev: kv.CreateRevision}})
		}
	case strings.HasPrefix(key, record.Runs):
		l.alive[strings.TrimPrefix(key, record.Runs)] = true
	case strings.HasPrefix(key, record.Wants):
		job, id, err := record.ParseKey(record.Wants, key)
		if w, ok := record.Decode[record.Want](kv.Value); ok && err == nil {
			l.Asked = append(l.Asked, plan.PicturedWant{Job: job, Want: plan.Want{Want: w, ID: id, Rev: kv.ModRevision}})
		}
	case strings.HasPrefix(key, record.Kills):
		k, _ := record.Decode[record.Kill](kv.Value)
		l.kills[strings.TrimPrefix(key, record.Kills)] = k
	}
}

// whole puts together what belongs together.
func (l *looking) whole() *plan.Picture {
	for i := range l.Starts {
		s := &l.Starts[i]
		run := s.Job + "/" + s.ID.String()
		s.Alive = l.alive[run]
		if k, ok := l.kills[run]; ok {
			s.Kill = &k
		}
	}
	for i := range l.Peers {
		p := &l.Peers[i]
		p.Card, p.Carded = l.cards[p.Host]
		p.Drain, p.Drained = l.Drains[p.Host]
	}
	slices.SortFunc(l.Starts, func(a, b plan.Pictured) int { return cmp.Or(cmp.Compare(a.Job, b.Job), a.ID.Compare(b.ID)) })
	slices.SortFunc(l.Asked, func(a, b plan.PicturedWant) int { return cmp.Or(cmp.Compare(a.Job, b.Job), a.ID.Compare(b.ID)) })
	slices.SortFunc(l.Peers, func(a, b plan.Peer) int { return cmp.Compare(a.Host, b.Host) })
	return l.Picture
}
