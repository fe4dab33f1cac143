package faults

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/test/run"
)

// slack is what a busy machine may add to a time that is short by design.
const slack = 2 * time.Second

func TestAKilledWrapperHandsOverWithoutAnOrphan(t *testing.T) {
	o := newOffice(t, etcdtest.Shared(t).Endpoint())
	a := o.elect("stubborn", "--ttl", "60s")
	first, grand := o.await("start", 1), o.await("grandchild", 1)
	b := o.elect("meek", "--ttl", "60s")
	b.WaitLog("msg=waiting")
	at := coord.Now()
	a.Kill()
	second := o.await("start", 2)
	if run.Alive(first.pid) || run.Alive(grand.pid) {
		t.Error("the successor's child runs while the old one's family does")
	}
	// Against the TTL of 60 s that every other way would take.
	if took := second.at - at; took > slack {
		t.Errorf("hand-over took %v", took)
	} else {
		t.Logf("from kill -9 of the wrapper to the successor's child: %v", took)
	}
	b.Signal(syscall.SIGTERM)
	if code := b.Wait(); code != 0 {
		t.Errorf("code %d; %s", code, b.Stderr())
	}
	o.done()
}

func TestAKilledGuardIsALossWithNothingLeft(t *testing.T) {
	o := newOffice(t, etcdtest.Shared(t).Endpoint())
	a := o.elect("stubborn")
	first, grand := o.await("start", 1), o.await("grandchild", 1)
	guard := a.Guard()
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := a.Wait(); code != 70 {
		t.Errorf("code %d, want 70; %s", code, a.Stderr())
	}
	for _, pid := range []int{first.pid, grand.pid, guard} {
		if run.Alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	// Emptiness was proven, so the hold was released: a newcomer does not settle.
	b := o.elect("meek")
	o.await("start", 2)
	if strings.Contains(b.Stderr(), "settling") {
		t.Errorf("the record was left open: %s", b.Stderr())
	}
	o.done()
}

func TestAFrozenWrapperIsOverBeforeItsSuccessorStarts(t *testing.T) {
	o := newOffice(t, etcdtest.Shared(t).Endpoint())
	a := o.elect("stubborn", "--ttl", "4s")
	first, grand := o.await("start", 1), o.await("grandchild", 1)
	b := o.elect("meek", "--ttl", "4s")
	b.WaitLog("msg=waiting")
	at := coord.Now()
	a.Signal(syscall.SIGSTOP)
	second := o.await("start", 2)
	if run.Alive(first.pid) || run.Alive(grand.pid) {
		t.Error("the old child is alive")
	}
	// The lease runs out by itself, and the record was closed by the guard: no settling beyond that.
	if took := second.at - at; took > 4*time.Second+slack {
		t.Errorf("the successor started after %v", took)
	}
	a.Signal(syscall.SIGCONT)
	if code := a.Wait(); code != 70 {
		t.Errorf("code %d, want 70; %s", code, a.Stderr())
	}
	o.done()
}

func TestAFrozenGuardIsEndedByTheWrapper(t *testing.T) {
	o := newOffice(t, etcdtest.Shared(t).Endpoint())
	a := o.elect("stubborn", "--ttl", "4s")
	first, grand := o.await("start", 1), o.await("grandchild", 1)
	guard := a.Guard()
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	revoke(t, o, first.rev)
	if code := a.Wait(); code != 70 {
		t.Errorf("code %d, want 70; %s", code, a.Stderr())
	}
	for _, pid := range []int{first.pid, grand.pid, guard} {
		if run.Alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	o.done()
}

// leaseOf is the lease of the candidate with create revision rev.
func leaseOf(t *testing.T, o *office, rev uint64) coord.Candidate {
	t.Helper()
	cli := etcdtest.Client(t, o.endpoints...)
	all, err := coord.ListCandidates(t.Context(), cli, hold.ElectPrefix(o.name))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Token == rev {
			return c
		}
	}
	t.Fatalf("no candidate with token %d in %+v", rev, all)
	return coord.Candidate{}
}

func revoke(t *testing.T, o *office, rev uint64) {
	t.Helper()
	if _, err := etcdtest.Client(t, o.endpoints...).Revoke(context.Background(), leaseOf(t, o, rev).Lease); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, o *office, rev uint64) {
	t.Helper()
	if _, err := etcdtest.Client(t, o.endpoints...).Delete(context.Background(), leaseOf(t, o, rev).Key); err != nil {
		t.Fatal(err)
	}
}

// TestAHoldTakenAwayHandsOverWithoutOverlap is 40 of the 50 rounds; the leader that is paused has the others.
func TestAHoldTakenAwayHandsOverWithoutOverlap(t *testing.T) {
	for name, take := range map[string]func(*testing.T, *office, uint64){"revoked": revoke, "deleted": remove} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, etcdtest.Shared(t).Endpoint())
			current := o.elect("meek")
			start := o.await("start", 1)
			for round := range 20 {
				next := o.elect("meek")
				next.WaitLog("msg=waiting")
				at := coord.Now()
				take(t, o, start.rev)
				term := o.await("term", round+1)
				if took := term.at - at; took > slack {
					t.Errorf("round %d: SIGTERM after %v", round, took)
				}
				successor := o.await("start", round+2)
				if took := successor.at - term.at; took > slack {
					t.Errorf("round %d: the successor started %v after the old child's end", round, took)
				}
				if code := current.Wait(); code != 70 {
					t.Errorf("round %d: code %d, want 70; %s", round, code, current.Stderr())
				}
				current, start = next, successor
			}
			o.done()
		})
	}
}

// TestADeadHost kills wrapper, guard and child together, as the end of a machine does.
func TestADeadHost(t *testing.T) {
	end := func(a *run.Process, start act) {
		// Stopped first, so that none of them sees another's end.
		guard := a.Guard()
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range []int{guard, a.Pid(), start.pid} {
				_ = syscall.Kill(pid, sig)
			}
		}
	}
	t.Run("with a queue behind it", func(t *testing.T) {
		o := newOffice(t, etcdtest.Shared(t).Endpoint())
		a := o.elect("meek", "--ttl", "5s")
		start := o.await("start", 1)
		b := o.elect("meek", "--ttl", "5s")
		b.WaitLog("msg=waiting")
		at := coord.Now()
		end(a, start)
		if took := o.await("start", 2).at - at; took > 5*time.Second+slack {
			t.Errorf("the successor started after %v, want the TTL and two seconds", took)
		}
		o.done()
	})
	t.Run("with nobody queued", func(t *testing.T) {
		o := newOffice(t, etcdtest.Shared(t).Endpoint())
		a := o.elect("meek", "--ttl", "3s")
		start := o.await("start", 1)
		key := leaseOf(t, o, start.rev).Key
		watch := etcdtest.Client(t, o.endpoints...).Watch(t.Context(), key)
		end(a, start)
		for got := range watch {
			if len(got.Events) > 0 && got.Events[0].Type == 1 {
				break
			}
		}
		at := coord.Now()
		b := o.elect("meek", "--ttl", "3s")
		line := b.WaitLog("msg=settling")
		if !strings.Contains(line, "reason=") {
			t.Errorf("settling without a reason: %s", line)
		}
		if took := o.await("start", 2).at - at; took > 3*time.Second+slack {
			t.Errorf("the newcomer started after %v, want its TTL", took)
		}
		o.done()
	})
}

func TestAWaiterThatLosesItsPlaceQueuesAgain(t *testing.T) {
	for name, hurt := range map[string]func(t *testing.T, o *office, b *run.Process, key coord.Candidate){
		"revoked": func(t *testing.T, o *office, _ *run.Process, key coord.Candidate) {
			if _, err := etcdtest.Client(t, o.endpoints...).Revoke(context.Background(), key.Lease); err != nil {
				t.Fatal(err)
			}
		},
		"stopped for two TTLs": func(t *testing.T, o *office, b *run.Process, key coord.Candidate) {
			b.Signal(syscall.SIGSTOP)
			time.Sleep(4 * time.Second) // two TTLs
			b.Signal(syscall.SIGCONT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, etcdtest.Shared(t).Endpoint())
			a := o.elect("meek")
			first := o.await("start", 1)
			b := o.elect("meek", "--ttl", "2s")
			b.WaitLog("msg=waiting")
			cli := etcdtest.Client(t, o.endpoints...)
			all, err := coord.ListCandidates(t.Context(), cli, hold.ElectPrefix(o.name))
			if err != nil || len(all) != 2 {
				t.Fatal(all, err)
			}
			hurt(t, o, b, all[1])

			// It stands in the queue again, with another lease, and has not started anything.
			for {
				again, err := coord.ListCandidates(t.Context(), cli, hold.ElectPrefix(o.name))
				if err != nil {
					t.Fatal(err)
				}
				if len(again) == 2 && again[1].Lease != all[1].Lease {
					break
				}
				time.Sleep(10 * time.Millisecond) // a poll of etcd
			}
			if len(o.acts()) != 1 {
				t.Fatalf("started without holding: %v", o.acts())
			}
			a.Signal(syscall.SIGTERM)
			if code := a.Wait(); code != 0 {
				t.Errorf("code %d; %s", code, a.Stderr())
			}
			if second := o.await("start", 2); second.rev <= first.rev {
				t.Errorf("token %d after %d", second.rev, first.rev)
			}
			o.done()
		})
	}
}
