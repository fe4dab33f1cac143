//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/go-coord/coord"
	cronjob "github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/test/ticks"
)

// cron is three daemons with a handful of jobs: each tick has one verdict and at most one start, no two runs are alive where the job
// does not allow it, and nothing is silent.
type cron struct {
	daemons []*part
	jobs    []scheduled
	said    archive
	kinds   map[string]int // how many ticks ended in which way
}

// scheduled is a job.
type scheduled struct {
	name, fields, span, manner string
	step                       int64
}

// archive is what cron keeps in etcd.
type archive interface {
	// results are those of a job, and the last tick that is decided: of a host, where it is named.
	results(job, host string) (all []record.Result, cursor int64, err error)
	// open are the ticks of runs whose end is not known.
	open() ([]int64, error)
}

// lateness is what a start may be late beyond its deadline: between the last look at the clock and the fork a daemon may be stopped.
const lateness = 15 * time.Second

func schedules() []scheduled {
	return []scheduled{
		{"second", `"schedule":"* * * * * *","seconds":true,"overlap":"allow"`, "200ms", jobFree, 1},
		{"long", `"schedule":"@every 2s"`, "3s", jobAlone, 2},
		{"hidden", `"schedule":"@every 2s","prefer":"sticky"`, "300ms", jobKin, 2},
		{"each", `"schedule":"@every 3s","run_on":"all"`, "1s", jobHost, 3},
		{"shaky", `"schedule":"@every 4s","retry":{"max":2,"delay":"500ms","other_node":true}`, "300ms", jobFailed, 4},
	}
}

// spec is what stands in etcd of a job. The run's mark is in its environment.
func (s scheduled) spec(a *arena) (string, error) {
	command, err := json.Marshal([]string{a.Self, jobRole, a.ledgerPath(), a.scratch("locks"), s.span, s.manner})
	spec := fmt.Sprintf(`{%s,"cmd":%s,"kill_after":"1s","env":{%q:%q},"history":{"ok":10000,"failed":10000}}`, s.fields, command, runEnv, a.mark())
	return spec, err
}

func newCron(ctx context.Context, a *arena) (workload, error) {
	c := &cron{jobs: schedules(), said: stored{a.client}, kinds: map[string]int{}}
	for _, s := range c.jobs {
		spec, err := s.spec(a)
		if err == nil {
			_, err = cronjob.Parse(s.name, []byte(spec))
		}
		if err == nil {
			_, err = a.client.Put(ctx, record.JobKey(s.name), spec)
		}
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", s.name, err)
		}
	}
	for i := range 3 {
		name := fmt.Sprintf("conchd.%d", i)
		// Its folder is that of its runs, and tells them whose they are.
		if err := os.Mkdir(a.scratch(name), 0o700); err != nil {
			return nil, err
		}
		c.daemons = append(c.daemons, &part{
			name: name, role: roleDaemon, host: i + 1,
			argv: []string{"env", "-C", a.scratch(name), a.program("conchd"), "--host", name, "--ttl", "5s", "--drain-timeout", "3s"},
			codes: []int{
				hold.CodeOK, hold.CodeUnreachable, hold.CodeNotAcquired, // the latter until the lease of the one before is over
				hold.SignalCode(int(syscall.SIGTERM)), // before it listens
			},
		})
	}
	return c, nil
}

func (c *cron) parts() []*part { return c.daemons }

// units are a job, or a job on each host, with those starts that belong there.
func (c *cron) units(s scheduled, events []event) (hosts []string, starts map[string][]ticks.Start, bad []violation) {
	hosts, starts = []string{""}, map[string][]ticks.Start{}
	if s.manner == jobHost {
		hosts = nil
		for _, d := range c.daemons {
			hosts = append(hosts, d.name)
		}
	}
	for _, e := range holds(events, s.name) {
		if e.What != whatStart && e.What != whatOverlap {
			continue
		}
		one := ticks.Start{Rev: int64(e.Token), Pid: e.Pid, Overlap: e.What == whatOverlap}
		host := e.Part
		if len(hosts) == 1 {
			host = ""
		}
		if _, err := fmt.Sscan(e.Value, &one.Tick, &one.Attempt); err != nil || !slices.Contains(hosts, host) {
			bad = append(bad, violationf("cron", e.At, "%s: a start of %q on %q: %v", s.name, e.Value, e.Part, err))
		}
		starts[host] = append(starts[host], one)
	}
	return hosts, starts, bad
}

// waits until each job has run again, on each host where it is to, and what was left open is closed.
func (c *cron) waits(events []event, since time.Duration) (late []violation) {
	for _, s := range c.jobs {
		on := map[string]bool{}
		for _, e := range holds(events, s.name) {
			if e.What == whatStop && e.At > since {
				on[e.Part] = true
			}
		}
		want := 1
		if s.manner == jobHost {
			want = len(c.daemons)
		}
		if len(on) < want {
			late = append(late, violationf("cron", 0, "%s: it ran on %d hosts, want %d, although nothing is in the way any more", s.name, len(on), want))
		}
	}
	open, err := c.said.open()
	if err != nil {
		return append(late, violationf("cron", 0, "nobody knows what is open: %v", err))
	}
	// What began before is over: of the longest job, and of what a guard or a peer has to settle.
	if began := wall(since); len(open) > 0 && slices.Min(open) < began {
		late = append(late, violationf("cron", 0, "a run of tick %d stays open, although everything works since %d", slices.Min(open), began))
	}
	return late
}

// wall is a time of the history on the wall clock, in seconds.
func wall(at time.Duration) int64 { return time.Now().Add(at - coord.Now()).Unix() }

func (c *cron) audit(events []event) (found []violation) {
	for _, s := range c.jobs {
		hosts, starts, bad := c.units(s, events)
		found = append(found, bad...)
		for _, host := range hosts {
			results, cursor, err := c.said.results(s.name, host)
			if err != nil {
				found = append(found, violationf("cron", 0, "%s: nobody knows what became of its ticks: %v", s.name, err))
				continue
			}
			kinds, wrong := ticks.Audit(s.job(host), starts[host], results, cursor)
			for _, w := range wrong {
				found = append(found, violationf("cron", 0, "%s", w))
			}
			for kind, n := range kinds {
				c.kinds[kind] += n
			}
		}
	}
	return found
}

// job is what is known of one for its audit.
func (s scheduled) job(host string) ticks.Job {
	name := s.name
	if host != "" {
		name += "@" + host
	}
	deadline := (&cronjob.Job{}).Deadline(time.Duration(s.step) * time.Second)
	return ticks.Job{
		Name: name, Step: s.step, Allow: s.manner == jobFree, Retried: s.manner == jobFailed, Late: deadline + lateness,
	}
}

func (c *cron) tally(_ []event, numbers map[string]int) {
	for kind, n := range c.kinds {
		numbers["ticks "+kind] += n
	}
}
