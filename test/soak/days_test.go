package soak

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// What a daemon does by default: see package job.
const (
	keepClaims   = time.Hour
	keepResults  = 72 * time.Hour
	history      = 50
	pruneEvery   = 16
	compactEvery = time.Hour // --auto-compaction-mode=periodic --auto-compaction-retention=1h: what is older goes, each hour
	reportEvery  = 12 * time.Hour
	mostData     = 200e6
)

// played is a job of the soak.
type played struct {
	name  string
	every time.Duration
	lasts time.Duration
	fails int // of a hundred
}

var jobs = []played{
	{"every-second", time.Second, 100 * time.Millisecond, 0},
	{"every-ten-seconds", 10 * time.Second, 3 * time.Second, 5},
	{"every-minute", time.Minute, 20 * time.Second, 1},
	{"overlapping", 30 * time.Second, 70 * time.Second, 0}, // two of three ticks are skipped
	{"hourly", time.Hour, 10 * time.Minute, 50},
}

// calendar is a world whose time runs pace times as fast as ours.
type calendar struct {
	*testing.T
	cli   *clientv3.Client
	pace  float64
	epoch time.Time // of it
	began time.Time // of ours
	end   time.Duration
	hosts []*node

	ticks, skips atomic.Int64
	behind       atomic.Int64 // the most that a tick was late, of ours
	played       atomic.Int64 // up to here, by the job that has the most ticks
}

// node is one daemon, as etcd sees it.
type node struct {
	name    string
	store   *store.Store
	mu      sync.RWMutex // shared while a claim is under way on the session
	session *coord.Session
}

// real is how long something lasts here.
func (c *calendar) real(d time.Duration) time.Duration { return time.Duration(float64(d) / c.pace) }

// at waits for a moment of the calendar.
func (c *calendar) at(d time.Duration) {
	late := time.Since(c.began) - c.real(d)
	if late < 0 {
		<-time.After(-late)
		return
	}
	for old := c.behind.Load(); int64(late) > old && !c.behind.CompareAndSwap(old, int64(late)); old = c.behind.Load() {
	}
}

func (c *calendar) must(err error) {
	if err != nil {
		c.Error(err)
	}
}

// TestDaysOfJobs plays days of jobs on one etcd: nothing in it grows.
func TestDaysOfJobs(t *testing.T) {
	played := time.Duration(*days * float64(24*time.Hour))
	etcd := etcdtest.Cluster(t, 1)
	c := &calendar{
		T: t, cli: etcd.Client(t), pace: played.Seconds() / within.Seconds(), end: played,
		epoch: time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC),
	}
	for _, name := range []string{"a", "b", "c"} {
		cli := etcd.Client(t)
		s, err := coord.NewSession(t.Context(), cli, coord.SessionOptions{TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c.hosts = append(c.hosts, &node{name: name, store: store.New(cli, coord.Now), session: s})
	}
	c.began = time.Now()
	var work sync.WaitGroup
	for i, j := range jobs {
		got, err := c.cli.Put(t.Context(), record.JobKey(j.name), `{"schedule":"@manual","cmd":["true"]}`)
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			last := c.play(j, got.Header.Revision, i == 0)
			c.cursor(j.name, last)
		})
	}
	done, stop := make(chan struct{}), make(chan struct{})
	go func() { work.Wait(); close(done) }()
	var beside sync.WaitGroup
	beside.Go(func() { c.compact(stop) })
	beside.Go(func() { c.restart(stop) })
	seen := c.report(done)
	<-done
	close(stop)
	beside.Wait()
	c.judge(seen)
	for _, h := range c.hosts {
		_ = h.session.Close(context.Background())
	}
}

// late reports whether there is no time to play on: the machine is slower than the pace.
func (c *calendar) late() bool { return time.Since(c.began) > *within*5/4 }

// play plays one job, tick for tick: hosts take turns, and now and then another one asks as well. It returns the last tick.
func (c *calendar) play(j played, specRev int64, first bool) (last int64) {
	var cursor int64
	var until time.Duration // something of it runs
	var runs sync.WaitGroup
	defer runs.Wait()
	for n := 1; time.Duration(n)*j.every <= c.end && !c.Failed() && !c.late(); n++ {
		due := time.Duration(n) * j.every
		c.at(due)
		id := record.ID{Tick: c.epoch.Add(due).Unix()}
		last = id.Tick
		if first {
			c.played.Store(int64(due))
		}
		h, rival := c.hosts[n%len(c.hosts)], c.hosts[(n+1)%len(c.hosts)]
		g := store.Ground{
			Job: j.name, SpecRev: specRev, Cursor: &record.Cursor{Tick: id.Tick, Host: h.name}, CursorRev: cursor,
			Keep: c.real(keepClaims), Retain: c.real(keepResults),
		}
		if due < until {
			cursor = c.skip(h, g, id)
			continue
		}
		runs.Wait() // of what is slower than it should be here
		rev, won, err := c.claim(h, g, id)
		if err != nil || !won {
			c.Errorf("%s/%s: won %v, %v", j.name, id, won, err)
			return last
		}
		if n%8 == 0 {
			if _, won, err := c.claim(rival, g, id); won || err != nil {
				c.Errorf("%s/%s: won twice: %v, %v", j.name, id, won, err)
			}
		}
		cursor, until = rev, due+j.lasts
		c.ticks.Add(1)
		runs.Go(func() {
			c.at(until)
			c.finish(h, j, g, id, rev, n)
		})
	}
	return last
}

// cursor holds where a job stands in etcd against its last tick: none is left out, since each moved the cursor from the one before.
func (c *calendar) cursor(job string, last int64) {
	got, err := c.cli.Get(c.Context(), record.CursorKey(job, ""))
	if c.must(err); err != nil || last == 0 {
		return
	}
	if at, ok := record.Decode[record.Cursor](got.Kvs[0].Value); !ok || at.Tick != last {
		c.Errorf("%s: the cursor is at %d, want %d", job, at.Tick, last)
	}
}

func (c *calendar) claim(h *node, g store.Ground, id record.ID) (rev int64, won bool, err error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.store.Claim(c.Context(), c.start(h, g, id))
}

func (c *calendar) start(h *node, g store.Ground, id record.ID) store.Start {
	now := c.epoch.Add(time.Duration(float64(time.Since(c.began)) * c.pace)).UnixMilli()
	lease, nonce := h.session.Lease(), h.name+"-"+id.String()
	return store.Start{
		Ground: g, ID: id, Host: h.name, Lease: lease, Alone: true,
		Fire: record.Fire{
			Nonce: nonce, Host: h.name, Decision: record.DecideRun, Kind: record.Scheduled, Attempt: 1, SpecRev: g.SpecRev, At: now,
		},
		Open: record.Open{
			Nonce: nonce, Host: h.name, Lease: int64(lease), TTL: 10_000, Kind: record.Scheduled, Attempt: 1, SpecRev: g.SpecRev, At: now,
		},
	}
}

// skip is the verdict of a tick while the one before it still runs.
func (c *calendar) skip(h *node, g store.Ground, id record.ID) int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	fire := c.start(h, g, id).Fire
	fire.Decision = record.DecideSkip
	r := c.result(h, g, id, record.Skipped)
	rev, won, err := h.store.Decide(c.Context(), &store.Verdict{Ground: g, ID: id, Fire: fire, Result: r})
	if err != nil || !won {
		c.Errorf("%s/%s: skipped %v, %v", g.Job, id, won, err)
	}
	c.skips.Add(1)
	return rev
}

func (c *calendar) result(h *node, g store.Ground, id record.ID, how record.Status) *record.Result {
	return &record.Result{
		Job: g.Job, Tick: id.Tick, Kind: record.Scheduled, Attempt: 1, Status: how, Host: h.name, SpecRev: g.SpecRev,
		EndedAt: record.StampOf(c.epoch.Add(time.Duration(float64(time.Since(c.began)) * c.pace))), RunID: g.Job + "/" + id.String(),
		Output: record.Output{Tail: "what a job prints, in a line of some length, as most of them do\n"},
	}
}

func (c *calendar) finish(h *node, j played, g store.Ground, id record.ID, rev int64, n int) {
	how := record.Success
	if n*37%100 < j.fails {
		how = record.Failed
	}
	end := store.End{Job: j.name, ID: id, OpenRev: rev, Result: c.result(h, g, id, how), Retain: g.Retain}
	was, err := h.store.Finish(c.Context(), end)
	if err != nil || !was {
		c.Errorf("%s/%s: finished %v, %v", j.name, id, was, err)
	}
	if n%pruneEvery == 0 {
		c.must(h.store.Prune(c.Context(), j.name, history, history))
	}
}

// compact does each hour what etcd does: what is an hour old and was changed since goes.
func (c *calendar) compact(stop <-chan struct{}) {
	var before int64
	each := time.NewTicker(c.real(compactEvery))
	defer each.Stop()
	for {
		select {
		case <-each.C:
		case <-stop:
			return
		}
		got, err := c.cli.Get(c.Context(), "x", clientv3.WithCountOnly())
		c.must(err)
		if before > 0 {
			_, err := c.cli.Compact(c.Context(), before)
			c.must(err)
		}
		if err == nil {
			before = got.Header.Revision
		}
	}
}

// restart replaces the session of one host after the other, each twice a day: with it go the markers of what it runs.
func (c *calendar) restart(stop <-chan struct{}) {
	each := time.NewTicker(c.real(4 * time.Hour))
	defer each.Stop()
	for n := 0; ; n++ {
		select {
		case <-each.C:
		case <-stop:
			return
		}
		h := c.hosts[n%len(c.hosts)]
		h.mu.Lock()
		old := h.session
		s, err := coord.NewSession(c.Context(), c.cli, coord.SessionOptions{TTL: time.Minute})
		if c.must(err); err == nil {
			h.session = s
		}
		h.mu.Unlock()
		if err == nil {
			c.must(old.Close(c.Context()))
		}
	}
}

// size is etcd's data at a moment.
type size struct {
	at, passed    time.Duration // of the calendar, and here
	file, used    int64
	keys, leases  int
	ticks, behind int64
}

// report looks each twelve hours, and a few times in a short run.
func (c *calendar) report(done <-chan struct{}) (seen []size) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	each := min(reportEvery, c.end/4)
	for at := each; at <= c.end && !c.Failed(); {
		select {
		case <-look.C:
		case <-done:
			if time.Duration(c.played.Load()) < at {
				return seen
			}
		}
		if time.Duration(c.played.Load()) < at {
			continue
		}
		status, err := c.cli.Status(c.Context(), c.cli.Endpoints()[0])
		c.must(err)
		keys, err := c.cli.Get(c.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
		c.must(err)
		leases, err := c.cli.Leases(c.Context())
		if c.must(err); c.Failed() {
			return seen
		}
		s := size{at, time.Since(c.began), status.DbSize, status.DbSizeInUse, int(keys.Count), len(leases.Leases), c.ticks.Load(), c.behind.Load()}
		seen = append(seen, s)
		at += each
		c.Logf("%6.1f h: %7d starts, file %6.1f MB, used %5.1f MB, keys %5d, leases %3d, at most %v behind",
			s.at.Hours(), s.ticks, float64(s.file)/1e6, float64(s.used)/1e6, s.keys, s.leases,
			time.Duration(s.behind).Round(time.Millisecond))
	}
	return seen
}

// keysMost is how many keys the jobs may have at a pace: who was late goes faster than he should, while claims stay for as long.
func (c *calendar) keysMost(pace float64) float64 {
	most := 100.0 // jobs, cursors, opens, markers
	for _, j := range jobs {
		kept := pace * (c.real(keepClaims*9/8) + 5*time.Second).Seconds() / j.every.Seconds()
		most += kept*1.1 + 3*(history+pruneEvery)
	}
	return most
}

// judge holds what was seen against what there can be.
func (c *calendar) judge(seen []size) {
	file := &series{name: "file, MB", scale: 1e6, slack: 8e6}
	keys := &series{name: "keys", scale: 1, slack: 300}
	leases := &series{name: "leases", scale: 1, slack: 6}
	pace := c.pace
	for i, s := range seen {
		if i > 0 {
			pace = max(pace, (s.at-seen[i-1].at).Seconds()/(s.passed-seen[i-1].passed).Seconds())
		}
		most := c.keysMost(pace)
		if s.file > mostData || float64(s.keys) > most || s.leases > 100 {
			c.Errorf("after %v: %d bytes, %d keys, %d leases; want at most %.0f, %.0f, 100", s.at, s.file, s.keys, s.leases, mostData, most)
		}
		file.at = append(file.at, float64(s.file))
		keys.at = append(keys.at, float64(s.keys))
		leases.at = append(leases.at, float64(s.leases))
	}
	played := time.Duration(c.played.Load())
	summary := fmt.Sprintf("%.2f days in %v: %d starts, %d skipped",
		played.Hours()/24, time.Since(c.began).Round(time.Second), c.ticks.Load(), c.skips.Load())
	if len(seen) == 0 {
		c.Errorf("%s: nothing was looked at", summary)
	}
	if played < 48*time.Hour { // it fills up still
		c.Log(summary)
		return
	}
	c.Logf("%s\n%s", summary, table(c.T, []*series{file, keys, leases}, true))
}
