package cron

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/test/ticks"
)

const (
	// chaosTime is how long faults come: a variable of that name may say more, as in CRON_CHAOS=10m. The timeout of the test has to
	// allow for it and two minutes.
	chaosTime = "CRON_CHAOS"
	// chaosSeed makes the same faults come again, in the same order.
	chaosSeed = "CRON_SEED"
)

// mayhem is a fleet to which things happen.
type mayhem struct {
	*ledger
	etcd  *etcdtest.Group
	rng   *rand.Rand
	began time.Time
	hosts map[string]*daemonProcess // nil: that one is down
	// later is what is to be done about what was done, in the order of its time.
	later []errand
	// sick is what a fault is under way about, so that no two are about the same.
	sick map[string]bool
}

// errand is to be done at a moment.
type errand struct {
	at   time.Time
	what func()
}

// TestNothingRunsTwiceWhateverHappens lets daemons be killed and frozen, and members of etcd, every few seconds: no tick is started
// twice, no two runs of a job are alive at once unless it allows that, each tick has one verdict that is true, no daemon ends
// by itself, and when all is over nothing is left.
func TestNothingRunsTwiceWhateverHappens(t *testing.T) {
	span, err := time.ParseDuration(cmp.Or(os.Getenv(chaosTime), "40s"))
	if err != nil {
		t.Fatalf("%s: %v", chaosTime, err)
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(chaosSeed), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", chaosSeed, err)
	}
	t.Logf("%s=%d", chaosSeed, seed)
	c := etcdtest.Cluster(t, 3)
	m := &mayhem{
		ledger: newLedger(newFleet(t, c.Endpoints()...)), etcd: c, rng: rand.New(rand.NewPCG(seed, 1)), began: time.Now(),
		hosts: map[string]*daemonProcess{}, sick: map[string]bool{},
	}
	for _, host := range []string{"a", "b", "c"} {
		m.hosts[host] = m.daemon(host, ttl(host)...)
	}
	m.add("second", "sleep 0.2", `{"schedule":"* * * * * *","seconds":true}`)
	m.add("long", "sleep 3 & wait", `{"schedule":"@every 2s"}`)
	m.add("side", "sleep 1", `{"schedule":"@every 3s","overlap":"allow"}`)
	m.add("hidden", "setsid sleep 5 & sleep 0.5", `{"schedule":"@every 2s","prefer":"sticky"}`)
	steps := map[string]int64{"second": 1, "long": 2, "side": 3, "hidden": 2}

	m.rage(span)
	m.heal(slices.Collect(maps.Keys(steps)))
	for _, d := range m.hosts {
		m.stop(d)
	}
	m.empty()
	m.nothingOpen()
	for job, step := range steps {
		t.Logf("%s: %s", job, ticks.Tally(m.audit(job, step)))
	}
	if t.Failed() {
		t.Log(m.logs())
	}
}

// ttl is what a host says of its lease: one has the default, the others come back sooner.
func ttl(host string) []string {
	if host == "a" {
		return nil
	}
	return []string{"--ttl", "5s"}
}

// rage lets things happen until a time has passed.
func (m *mayhem) rage(span time.Duration) {
	m.Helper()
	faults := []func(){m.kill, m.kill, m.outage, m.freezeDaemon, m.killMember, m.killLeader, m.freezeLeader, m.blackout}
	end := m.began.Add(span)
	next := time.Now().Add(2 * time.Second)
	for now := time.Now(); now.Before(end); now = time.Now() {
		switch {
		case len(m.later) > 0 && !now.Before(m.later[0].at):
			do := m.later[0].what
			m.later = m.later[1:]
			do()
		case !now.Before(next):
			faults[m.rng.IntN(len(faults))]()
			next = now.Add(time.Second + time.Duration(m.rng.IntN(3000))*time.Millisecond)
		default:
			at := next
			if len(m.later) > 0 && m.later[0].at.Before(at) {
				at = m.later[0].at
			}
			time.Sleep(time.Until(at)) // faults come by the clock, whatever goes on
		}
		m.alive()
	}
}

// alive fails if a daemon has ended that was not killed. One that found no etcd at its start is started again, as a service manager
// does.
func (m *mayhem) alive() {
	m.Helper()
	for host, d := range m.hosts {
		if d == nil {
			continue
		}
		select {
		case <-d.Exited():
			if d.Code() == hold.CodeUnreachable && !strings.Contains(d.Stderr(), "level=") {
				m.say("there was no etcd for", host)
				m.hosts[host] = m.launch(host, ttl(host)...)
				continue
			}
		default:
		}
		m.lives(d)
	}
	if m.Failed() {
		m.FailNow()
	}
}

// after puts off what ends a fault.
func (m *mayhem) after(span time.Duration, what func()) {
	e := errand{time.Now().Add(span), what}
	at, _ := slices.BinarySearchFunc(m.later, e, func(a, b errand) int { return a.at.Compare(b.at) })
	m.later = slices.Insert(m.later, at, e)
}

// say logs what happens, and when.
func (m *mayhem) say(what, whom string) {
	m.Logf("%6.1f s: %s %s", time.Since(m.began).Seconds(), what, whom)
}

// someone is a host to which nothing happens yet; false: there is none.
func (m *mayhem) someone() (string, bool) {
	host := []string{"a", "b", "c"}[m.rng.IntN(3)]
	return host, !m.sick[host] && m.hosts[host] != nil
}

// kill is kill -9 of a daemon, and its service manager starts it again at once.
func (m *mayhem) kill() {
	if host, ok := m.someone(); ok {
		m.say("kill -9", host)
		m.hosts[host].Kill()
		m.hosts[host] = m.launch(host, ttl(host)...)
	}
}

// outage is kill -9 of a daemon that comes back later.
func (m *mayhem) outage() {
	if host, ok := m.someone(); ok {
		m.say("kill -9 for 4 s", host)
		m.hosts[host].Kill()
		m.hosts[host] = nil
		m.after(4*time.Second, func() { m.hosts[host] = m.launch(host, ttl(host)...) })
	}
}

// freezeDaemon stops a daemon for 8 s.
func (m *mayhem) freezeDaemon() {
	if host, ok := m.someone(); ok {
		m.say("SIGSTOP for 8 s", host)
		d := m.hosts[host]
		d.Stop()
		m.sick[host] = true
		m.after(8*time.Second, func() { d.Signal(syscall.SIGCONT); m.sick[host] = false })
	}
}

// etcdFault begins one that ends later, unless there is one: a majority always is there again soon.
func (m *mayhem) etcdFault(what string, begin func() (end func()), span time.Duration) {
	if m.sick["etcd"] {
		return
	}
	m.say(what, "etcd")
	m.sick["etcd"] = true
	end := begin()
	m.after(span, func() { end(); m.sick["etcd"] = false })
}

func (m *mayhem) killMember() {
	i := m.rng.IntN(m.etcd.Len())
	m.etcdFault("kill -9 of a member for 2 s", func() func() {
		m.etcd.Kill(i)
		return func() { m.etcd.Restart(i) }
	}, 2*time.Second)
}

func (m *mayhem) killLeader() {
	m.etcdFault("kill -9 of the leader for 3 s", func() func() {
		i := m.etcd.Leader()
		m.etcd.Kill(i)
		return func() { m.etcd.Restart(i) }
	}, 3*time.Second)
}

func (m *mayhem) freezeLeader() {
	m.etcdFault("SIGSTOP of the leader for 3 s", func() func() {
		i := m.etcd.Leader()
		m.etcd.Stop(i)
		return func() { m.etcd.Cont(i) }
	}, 3*time.Second)
}

func (m *mayhem) blackout() {
	m.etcdFault("kill -9 of all members for 1 s", func() func() {
		m.etcd.Kill()
		return func() { m.etcd.Restart() }
	}, time.Second)
}

// heal ends all faults, and waits until every job has run again and what was left open is closed.
func (m *mayhem) heal(jobs []string) {
	m.Helper()
	for _, e := range m.later {
		e.what()
	}
	m.etcd.Ready()
	m.say("all is well again", "")
	// One that was started while there was no etcd may give up as late as now.
	m.until("not all are registered", func() bool {
		m.alive()
		for _, d := range m.hosts {
			if !d.registered() {
				return false
			}
		}
		return true
	})
	healed := time.Now().Unix()
	m.until("what was left open stays open", func() bool {
		for _, key := range m.keys(record.Opens) {
			if _, id, err := record.ParseOpen(key); err != nil || id.Tick <= healed {
				return false
			}
		}
		return true
	})
	for _, job := range jobs {
		m.await(record.Range(record.Results, job), func(r record.Result) bool { return r.Tick > healed && r.Status == record.Success })
	}
}
