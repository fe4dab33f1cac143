package cron

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
)

// What happens in a storm, each thing with the same chance.
var weather = []struct {
	name string
	do   func(s *storm)
}{
	{"a daemon is killed, and its guard says so", func(s *storm) { s.replace(func(h *machine) { h.kill(true) }) }},
	{"a host dies", func(s *storm) { s.replace(func(h *machine) { h.kill(false) }) }},
	{"a daemon is stopped", func(s *storm) { s.replace(func(h *machine) { h.leave() }) }},
	{"etcd has no quorum for a while", func(s *storm) {
		s.m.NoQuorum(true)
		s.sleep(8 * time.Second)
		s.m.NoQuorum(false)
	}},
	{"a session's lease is revoked", func(s *storm) {
		if keys := s.m.Keys(record.Nodes); len(keys) > 0 {
			for _, l := range s.m.Leases() {
				if kv := s.m.Get(keys[s.IntN(len(keys))]); kv != nil && int64(l.ID) == kv.Lease {
					_ = s.m.Revoke(l.ID) // it may have run out meanwhile
				}
			}
		}
	}},
	{"a run marker is deleted", func(s *storm) {
		if keys := s.m.Keys(record.Runs); len(keys) > 0 {
			s.m.Delete(keys[s.IntN(len(keys))])
		}
	}},
	{"a clock is set", func(s *storm) { s.one().step(time.Duration(s.IntN(2000)-1000) * time.Millisecond) }},
	{"watches are compacted", func(s *storm) {
		s.must(s.m.Compact(s.m.Rev()))
		s.m.CancelWatches("compacted")
	}},
	{"the cluster is paused for a while", func(s *storm) {
		_, err := s.m.Put(record.Pause, `{"by":"storm","at_ms":`+ms(time.Now())+`}`, 0)
		s.must(err)
		s.sleep(6 * time.Second)
		_, err = s.m.Put(record.Pause, `{"by":"storm","at_ms":1,"resumed_ms":`+ms(time.Now())+`}`, 0)
		s.must(err)
	}},
	{"a job is written again", func(s *storm) { s.add("forbid", s.forbid) }},
}

// storm is a world in trouble.
type storm struct {
	*world
	*rand.Rand
	hosts  []*machine
	forbid string
	lives  int
}

func (s *storm) one() *machine { return s.hosts[s.IntN(len(s.hosts))] }

func (s *storm) sleep(most time.Duration) {
	time.Sleep(time.Duration(s.Int64N(int64(most)))) // fake time
}

// replace ends a daemon, and starts another one in its place after a while.
func (s *storm) replace(end func(*machine)) {
	i := s.IntN(len(s.hosts))
	end(s.hosts[i])
	s.sleep(5 * time.Second)
	s.lives++
	s.hosts[i] = s.node(fmt.Sprintf("%c%d", 'a'+i, s.lives))
}

// Whatever happens: no tick starts twice, nothing runs beside itself under "forbid", every tick has one verdict. The seeds of one
// run are a few; CRON_STORMS is how many.
func TestStorms(t *testing.T) {
	t.Parallel()
	seeds := 6
	if n, err := strconv.Atoi(os.Getenv("CRON_STORMS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.lingering = true
				w.storm(uint64(seed))
			})
		})
	}
}

func (w *world) storm(seed uint64) {
	s := &storm{world: w, Rand: rand.New(rand.NewPCG(seed, 0)), forbid: `{"schedule":"@every 2s","cmd":["sleep","3s"],"history":{"ok":1000,"failed":1000}}`}
	w.add("forbid", s.forbid)
	w.add("allow", `{"schedule":"@every 5s","cmd":["sleep","7s"],"overlap":"allow","history":{"ok":1000,"failed":1000}}`)
	for _, host := range []string{"a", "b", "c"} {
		s.hosts = append(s.hosts, w.node(host))
	}
	var told []string
	for range 12 {
		s.sleep(15 * time.Second)
		what := weather[s.IntN(len(weather))]
		told = append(told, fmt.Sprintf("%v %s", time.Since(w.start).Round(time.Millisecond), what.name))
		what.do(s)
	}
	end := time.Since(w.start)
	w.until(end + time.Minute) // all that was lost is settled
	for _, h := range s.hosts {
		h.leave()
	}
	w.audit("forbid", 2, int(end/time.Second))
	w.audit("allow", 5, int(end/time.Second))
	if w.most["forbid"] > 1 {
		w.Errorf("%d at once", w.most["forbid"])
	}
	if left := append(w.m.Keys(record.Runs), w.m.Keys(record.Opens)...); len(left) > 0 {
		w.Errorf("left: %q", left)
	}
	if w.Failed() {
		w.Logf("seed %d: %q", seed, told)
	}
}

// audit holds what was recorded of a job against its ticks, one each step seconds up to the last.
func (w *world) audit(job string, step, last int) {
	w.Helper()
	starts := map[record.ID]int{}
	for _, b := range w.ran(job) {
		starts[b.id]++
	}
	for id, n := range starts {
		if n > 1 {
			w.Errorf("%s/%s was started %d times", job, w.second(id.Tick), n)
		}
	}
	verdicts := map[int64][]string{}
	for _, r := range w.results(job) {
		id, _ := r.ID()
		from := r.Tick
		if r.Ticks > 0 {
			from = r.From
		}
		for t := from; t <= r.Tick; t += int64(step) {
			verdicts[t-w.start.Unix()] = append(verdicts[t-w.start.Unix()], w.tell(r))
		}
		if ran := starts[id] > 0; ran != r.Status.Started() && r.Status != record.Killed {
			w.Errorf("%s: %s, and it was started %d times", job, w.tell(r), starts[id])
		}
	}
	for t := int64(step); t <= int64(last); t += int64(step) {
		if len(verdicts[t]) != 1 {
			w.Errorf("%s: tick %d has the verdicts %q", job, t, verdicts[t])
		}
	}
}
