package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// crew is what there is of distributed cron, at one revision: nodes, jobs, cursors, starts whose end is not known, and requests. Claims
// and results are not looked at: there are many, and nothing is decided by them but a tick at a time.
type crew struct {
	zones  *schedule.Zones
	rev    int64
	seen   int
	jobs   int
	cut    bool // there is more
	nodes  map[string]*crewman
	drains map[string]record.Stop
	paused *record.Stop // the whole cluster; nil: never
	alive  map[string]bool
	open   []openRun
	wants  []openWant
	ticks  []decided
	kills  []string // run ids
	specs  map[string]*job.Job
	bad    []pair // jobs that cannot be read, and why
	odd    []string
}

// crewman is a node: what stands at its two keys.
type crewman struct {
	plan.Peer
	registered bool
	carded     bool // there is a card; Carded: and it can be read
	leased     bool // all there is, is on a lease
}

type openRun struct {
	job  string
	id   record.ID
	says record.Open
}

type openWant struct {
	job  string
	id   record.ID
	says record.Want
}

// decided is a cursor: nothing up to its tick is started any more.
type decided struct {
	job, key string
	tick     int64
}

type pair struct{ name, why string }

func newCrew(zones *schedule.Zones) *crew {
	return &crew{zones: zones, nodes: map[string]*crewman{}, drains: map[string]record.Stop{}, alive: map[string]bool{}, specs: map[string]*job.Job{}}
}

// cron looks at nodes, jobs and runs.
func (v *visit) cron(ctx context.Context) {
	c, err := v.crew(ctx)
	for try := 1; try < listTries && errors.Is(err, rpctypes.ErrCompacted); try++ {
		c, err = v.crew(ctx)
	}
	switch {
	case errors.Is(err, hold.ErrPermission):
		v.say("cron", Note, record.Root, "this user may not look at jobs")
		return
	case err != nil:
		v.say("cron", Fail, record.Root, "cannot be listed: %v", err)
		return
	case c.seen == 0:
		return // nobody uses it
	}
	v.say("cron", OK, record.Root, "%d jobs, %d nodes, %d runs%s", c.jobs, len(c.peers()), len(c.open), map[bool]string{true: ", and there are more"}[c.cut])
	now := time.Now()
	v.oddCron(c)
	v.nodes(c, now)
	v.jobs(c, now)
	v.runs(c, now)
}

// crew reads all of it.
func (v *visit) crew(ctx context.Context) (*crew, error) {
	zones, err := schedule.OpenZones()
	if err != nil {
		return nil, err
	}
	c := newCrew(zones)
	for _, r := range [][2]string{
		{record.Jobs, clientv3.GetPrefixRangeEnd(record.Jobs)},
		{record.Nodes, clientv3.GetPrefixRangeEnd(record.Nodes)},
		{record.Runs, clientv3.GetPrefixRangeEnd(record.Root)}, // and state, which is the last
		{record.Cursors, clientv3.GetPrefixRangeEnd(record.Cursors)},
	} {
		rev, cut, err := v.pages(ctx, r[0], r[1], c.rev, &c.seen, c.take)
		if err != nil {
			return nil, err
		}
		c.rev, c.cut = rev, c.cut || cut
	}
	return c, v.between(ctx, c)
}

// between looks for keys that lie between the areas: these are none of ours.
func (v *visit) between(ctx context.Context, c *crew) error {
	ctx, cancel := v.bounded(ctx)
	defer cancel()
	var ops []clientv3.Op
	from := record.Root
	for _, area := range []string{record.Cursors, record.Fires, record.Jobs, record.Nodes, record.Results, record.Runs} {
		ops = append(ops, clientv3.OpGet(from, clientv3.WithRange(area), clientv3.WithKeysOnly(), clientv3.WithLimit(showMost), clientv3.WithRev(c.rev)))
		from = clientv3.GetPrefixRangeEnd(area)
	}
	got, err := v.cli.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return cli.Classify(err)
	}
	for _, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			c.odd = append(c.odd, string(kv.Key))
		}
	}
	return nil
}

// take takes in one key.
func (c *crew) take(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	var err error
	switch {
	case strings.HasPrefix(key, record.Cursors):
		err = c.takeCursor(key, kv)
	case strings.HasPrefix(key, record.Jobs):
		err = c.takeJob(key, kv)
	case strings.HasPrefix(key, record.Nodes), strings.HasPrefix(key, record.Cards), strings.HasPrefix(key, record.Drains):
		err = c.takeNode(key, kv)
	case key == record.Pause:
		stop, _ := record.Decode[record.Stop](kv.Value)
		c.paused = &stop
	default:
		err = c.takeStart(key, kv)
	}
	if err != nil {
		c.odd = append(c.odd, key)
	}
}

func (c *crew) takeJob(key string, kv *mvccpb.KeyValue) error {
	name, err := record.ParseName(record.Jobs, key)
	if err != nil {
		return err
	}
	c.jobs++
	c.specs[name] = nil
	spec, bad := job.ParseIn(c.zones, name, kv.Value)
	if bad != nil {
		c.bad = append(c.bad, pair{name, bad.Error()})
		return nil
	}
	c.specs[name] = spec
	return nil
}

func (c *crew) takeCursor(key string, kv *mvccpb.KeyValue) error {
	name, _, err := record.ParseCursor(key)
	if at, ok := record.Decode[record.Cursor](kv.Value); err == nil && ok {
		c.ticks = append(c.ticks, decided{name, key, at.Tick})
	}
	return err
}

func (c *crew) takeNode(key string, kv *mvccpb.KeyValue) error {
	area := record.Nodes
	for _, a := range []string{record.Cards, record.Drains} {
		if strings.HasPrefix(key, a) {
			area = a
		}
	}
	host, err := record.ParseName(area, key)
	if err != nil {
		return err
	}
	if area == record.Drains {
		c.drains[host], _ = record.Decode[record.Stop](kv.Value)
		return nil
	}
	n := c.nodes[host]
	if n == nil {
		n = &crewman{Peer: plan.Peer{Host: host}, leased: true}
		c.nodes[host] = n
	}
	n.leased = n.leased && kv.Lease != 0
	if area == record.Nodes {
		m, _ := record.Decode[coord.HostMetadata](kv.Value)
		n.registered, n.Rev, n.Labels, n.Version = true, kv.CreateRevision, m.Labels, m.Version
		return nil
	}
	n.Card, n.Carded = record.Decode[record.Card](kv.Value)
	n.carded = true
	return nil
}

func (c *crew) takeStart(key string, kv *mvccpb.KeyValue) error {
	for area, put := range map[string]func(job string, id record.ID){
		record.Runs:  func(job string, id record.ID) { c.alive[job+"/"+id.String()] = true },
		record.Kills: func(job string, id record.ID) { c.kills = append(c.kills, job+"/"+id.String()) },
		record.Wants: func(job string, id record.ID) {
			w, _ := record.Decode[record.Want](kv.Value)
			c.wants = append(c.wants, openWant{job, id, w})
		},
	} {
		if strings.HasPrefix(key, area) {
			job, id, err := record.ParseKey(area, key)
			if err == nil {
				put(job, id)
			}
			return err
		}
	}
	job, id, err := record.ParseOpen(key)
	if err == nil {
		o, _ := record.Decode[record.Open](kv.Value)
		c.open = append(c.open, openRun{job, id, o})
	}
	return err
}

// peers are the nodes that are registered, by host.
func (c *crew) peers() (all []plan.Peer) {
	for host, n := range c.nodes {
		if n.registered {
			p := n.Peer
			p.Drain, p.Drained = c.drains[host]
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b plan.Peer) int { return strings.Compare(a.Host, b.Host) })
	return all
}

func (v *visit) oddCron(c *crew) {
	p := pile{check: "cron", level: Warn, root: record.Root, what: "such keys"}
	for _, key := range c.odd {
		p.add(key, "is no key of ours, and in the way of none")
	}
	v.show(p)
}
