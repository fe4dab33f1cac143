package cron

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
	"github.com/go-coord/coord/test/ticks"
)

// long has a child that hides and does not listen, and goes on until it is killed; a start that finds the file ends at once.
func long(file string) string {
	return fmt.Sprintf(`[ -e %[1]s ] && exit 0; : >%[1]s; setsid sh -c "trap '' TERM; while :; do sleep 1; done" & trap '' TERM; while :; do sleep 1; done`, file)
}

// A daemon that is killed takes its runs with it, and they are known to be lost at once; the next tick runs on another node.
func TestADaemonThatIsKilledLeavesNothing(t *testing.T) {
	f := one(t)
	dir := t.TempDir()
	a := f.daemon("a")
	f.add("j", fmt.Sprintf(`{"schedule":"@every 2s","script":%q,"prefer":"sticky"}`, long(dir+"/seen")))
	tick := f.running("j").Tick
	f.until("it does not run", func() bool { return len(f.family()) >= 3 })
	b := f.daemon("b")
	guard := a.Guard()
	at := time.Now()
	a.Kill()
	r := f.next("j", tick-1)
	took := time.Since(at)
	f.empty()
	f.ended(r, record.Lost, record.ReasonDaemon)
	// Against the twenty seconds of two TTLs that every other way takes.
	within(t, "from kill -9 to the result", took, 2*time.Second)
	next := f.await(record.Range(record.Results, "j"), func(r record.Result) bool { return r.Tick > tick && r.Status == record.Success })
	if next.Host != "b" {
		t.Errorf("the next run was on %s", next.Host)
	}
	within(t, "from kill -9 to the next start", next.StartedAt.Sub(at), 6*time.Second)
	f.until("the guard lives on", func() bool { return !run.Alive(guard) })
	f.stop(b)
	f.nothingElse("a")
}

// nothingElse fails if etcd has more than the registration of a host that is dead.
func (f *fleet) nothingElse(dead string) {
	f.Helper()
	for _, area := range []string{record.Opens, record.Runs, record.Kills} {
		if keys := f.keys(area); len(keys) > 0 {
			f.Errorf("left in etcd: %q", keys)
		}
	}
	for _, key := range f.keys(record.Nodes) {
		if key != record.Nodes+dead {
			f.Errorf("registered: %q", key)
		}
	}
}

// A daemon that is frozen for longer than its guard can wait loses its runs, says so, and goes on.
func TestADaemonThatIsFrozenGoesOn(t *testing.T) {
	for name, row := range map[string]struct {
		ttl  string
		lost bool
	}{
		"shorter than its lease": {"30s", false},
		"longer":                 {"4s", true},
	} {
		t.Run(name, func(t *testing.T) {
			f, g := newLedger(one(t)), newGate(t)
			a := f.daemon("a", "--ttl", row.ttl)
			f.fleet.add("j", fmt.Sprintf(`{"schedule":"@manual","script":%q}`, g.script(0)))
			f.add("tick", "true", `{"schedule":"@every 2s"}`)
			asked := f.request("j")
			g.await(f.fleet)
			f.freeze(a, 8*time.Second)
			woken := time.Now()
			if row.lost {
				f.ended(f.result(asked), record.Lost, record.ReasonDaemon) // its guard said so while it was frozen
			} else {
				g.let(f.fleet)
				f.ended(f.result(asked), record.Success, "")
			}
			f.await(record.Range(record.Results, "tick"), func(r record.Result) bool {
				return r.Status == record.Success && r.Tick > woken.Unix()
			})
			f.lives(a)
			f.stop(a)
			f.empty()
			f.nothingOpen()
			t.Log(ticks.Tally(f.audit("tick", 2)))
		})
	}
}

// An etcd that is gone for a second costs no run and no daemon.
func TestEtcdIsAwayForASecond(t *testing.T) {
	c := etcdtest.Cluster(t, 1)
	f, g := newLedger(newFleet(t, c.Endpoints()...)), newGate(t)
	daemons := []*daemonProcess{f.daemon("a"), f.daemon("b")}
	f.fleet.add("j", fmt.Sprintf(`{"schedule":"@manual","script":%q}`, g.script(0)))
	f.add("tick", "true", `{"schedule":"@every 2s"}`)
	asked := f.request("j")
	g.await(f.fleet)
	f.next("tick", 0)
	c.Kill()
	time.Sleep(time.Second) // that it is away is the point
	c.Restart()
	c.Ready()
	back := time.Now().Unix()
	f.await(record.Range(record.Results, "tick"), func(r record.Result) bool { return r.Tick > back && r.Status == record.Success })
	g.let(f.fleet)
	f.ended(f.result(asked), record.Success, "")
	f.lives(daemons...)
	for _, d := range daemons {
		f.stop(d)
	}
	f.nothingOpen()
	t.Log(ticks.Tally(f.audit("tick", 2)))
}

// A guard that is killed, or does not answer any more, costs the runs that it had, and no daemon: the next runs have a new one.
func TestAGuardThatFails(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			f := one(t)
			dir := t.TempDir()
			a := f.daemon("a")
			f.add("j", fmt.Sprintf(`{"schedule":"@manual","script":%q,"run_ttl":"2s","kill_after":"1s"}`, long(dir+"/seen")))
			asked := f.request("j")
			f.until("it does not run", func() bool { return len(f.family()) >= 3 })
			f.must(syscall.Kill(a.Guard(), sig))
			r := f.result(asked)
			f.empty()
			if r.Status != record.Lost || r.Reason != record.ReasonGuard {
				t.Errorf("%s %s %s", r.Status, r.Reason, r.Detail)
			}
			f.ended(f.once("k", `{"cmd":["true"]}`), record.Success, "")
			f.stop(a)
			f.nothingOpen()
		})
	}
}
