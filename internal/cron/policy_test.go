package cron

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
)

func TestQueueOneWaitsForTheRunBeforeIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["sleep","25s"],"overlap":"queue_one"}`)
		w.node("a")
		w.node("b")
		w.until(81 * time.Second)
		w.want("j", "10 success", "20.1 queued success", "30 skipped overlap", "50 skipped overlap", "70 skipped overlap", "80 skipped overlap")
		if w.most["j"] != 1 {
			t.Errorf("%d at once", w.most["j"])
		}
	})
}

func TestReplaceEndsTheRunBeforeIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["sleep","25s"],"overlap":"replace"}`)
		w.node("a")
		w.node("b")
		w.until(35 * time.Second)
		w.want("j", "10 killed replaced", "20.1 replace killed replaced")
		if w.most["j"] != 1 {
			t.Errorf("%d at once", w.most["j"])
		}
	})
}

func TestAllowRunsSideBySide(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["sleep","25s"],"overlap":"allow"}`)
		w.node("a")
		w.until(61 * time.Second)
		w.everyTick("j", 10, 60, 10)
		if w.most["j"] != 3 {
			t.Errorf("%d at once", w.most["j"])
		}
	})
}

func TestADaemonThatIsKilledHandsOverAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["sleep","9s"],"prefer":"sticky"}`)
		a := w.node("a")
		w.until(12 * time.Second)
		w.node("b")
		w.until(15 * time.Second)
		a.kill(true)
		w.until(31 * time.Second)
		w.want("j", "10 lost daemon_died", "20 success")
	})
}

func TestAHostThatDiesIsSettled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["sleep","9s"]}`)
		a := w.node("a")
		w.until(12 * time.Second)
		w.node("b")
		w.until(15 * time.Second)
		a.kill(false)
		// Its marker goes after one TTL at most, and a TTL later nothing of it can live.
		w.until(39*time.Second + 900*time.Millisecond)
		w.want("j", "10 lost node_gone", "20 skipped overlap", "30 skipped overlap")
		// The record has what is known of the claim: its token above all.
		claims := w.m.List(record.Key(record.Fires, "j", record.ID{Tick: w.start.Unix() + 10}))
		if r := w.results("j")[0]; r.Rev != claims[0].CreateRevision || r.Host != "a" || r.SpecRev == 0 || r.ClaimedAt.Unix() != r.Tick {
			t.Errorf("rev %d, want %d; %+v", r.Rev, claims[0].CreateRevision, r)
		}
		w.until(45 * time.Second)
		w.everyTick("j", 10, 40, 30)
	})
}

func TestLostIsRepeatedWhereTheJobSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@at 2000-01-01T00:01:00Z","cmd":["sleep","1m"],"on_lost":"retry"}`)
		a := w.node("a")
		w.until(time.Minute + 10*time.Second)
		w.node("b")
		a.kill(true)
		w.until(time.Minute + 5*time.Minute)
		w.want("j", "60 lost daemon_died", "60.1 retry success")
	})
}

func TestFailuresAreRepeatedWithTheirDelays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@at 2000-01-01T00:01:00Z","cmd":["exit","3"],"retry":{"max":2,"delay":"1m","factor":2,"other_node":true}}`)
		w.node("a")
		w.node("b")
		w.until(time.Minute + 10*time.Minute)
		w.want("j", "60 failed exit_code", "60.1 retry failed exit_code", "60.2 retry failed exit_code")
		ran := w.ran("j")
		for i, gap := range []time.Duration{time.Minute, 2 * time.Minute} {
			if d := ran[i+1].at.Sub(ran[i].at); d < gap || d > gap+time.Second {
				t.Errorf("attempt %d came after %v, want %v", i+2, d, gap)
			}
			if ran[i].host == ran[i+1].host {
				t.Errorf("attempts %d and %d ran on %s", i+1, i+2, ran[i].host)
			}
			if ran[i+1].attempt != i+2 {
				t.Errorf("attempt %d, want %d", ran[i+1].attempt, i+2)
			}
		}
	})
}

func TestARunThatTakesTooLongIsEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@at 2000-01-01T00:01:00Z","cmd":["sleep","30m"],"run_ttl":"1m"}`)
		w.node("a")
		w.until(time.Minute + 2*time.Minute)
		w.want("j", "60 timeout run_ttl")
	})
}

func TestWhatCannotBeStartedIsAnError(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@at 2000-01-01T00:01:00Z","cmd":["missing"]}`)
		w.node("a")
		w.until(2 * time.Minute)
		w.want("j", "60 error not_started")
	})
}

func TestNobodyMatchesTheSelector(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 1m","cmd":["true"],"select":{"disk":"ssd"}}`)
		w.node("a")
		w.until(100 * time.Second) // the deadline, and what clocks may be apart
		w.want("j", "60 skipped no_node")
		w.node("b", func(o *Options) { o.Labels = map[string]string{"disk": "ssd"} })
		w.until(125 * time.Second)
		if got := w.ran("j"); len(got) != 1 || got[0].host != "b" {
			t.Errorf("ran %v", got)
		}
	})
}

func TestAFullNodeLeavesTicksToOthersAndSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		few := func(o *Options) { o.MaxRunning = 1 }
		w.add("long", `{"schedule":"@at 2000-01-01T00:00:10Z","cmd":["sleep","10m"],"run_ttl":"1h"}`)
		a := w.node("a", few)
		w.until(15 * time.Second)
		w.add("j", `{"schedule":"@at 2000-01-01T00:01:00Z","cmd":["true"]}`)
		w.add("k", `{"schedule":"@at 2000-01-01T00:10:30Z","cmd":["true"],"start_deadline":"10m"}`)
		w.until(3 * time.Minute)
		w.want("j", "60 missed no_capacity")
		// One that may be late starts as soon as there is room.
		w.until(11 * time.Minute)
		w.want("long", "10 success")
		w.want("k", "630 success")
		a.leave()
	})
}

// What has ended leaves its place to what is to be started, also while etcd does not take its result; but no more results wait
// than runs may run.
func TestResultsThatWaitTakeNoPlaceAndAreNotWithoutBound(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("long", `{"schedule":"@at 2000-01-01T00:00:05Z","cmd":["sleep","5m"],"run_ttl":"1h"}`)
		for name, at := range map[string]string{"a": "10", "b": "20", "c": "30"} {
			w.add(name, `{"schedule":"@at 2000-01-01T00:00:`+at+`Z","cmd":["true"],"start_deadline":"10m"}`)
		}
		w.node("x", func(o *Options) { o.MaxRunning = 2 })
		refused := w.m.Inject(coordtest.Rule{
			Method: coordtest.Txn, When: coordtest.Puts(record.Results), Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCTimeout),
		})
		w.until(time.Minute)
		if len(w.ran("a")) != 1 || len(w.ran("b")) != 1 {
			t.Errorf("a was started %d times, b %d: the result that waits took the place", len(w.ran("a")), len(w.ran("b")))
		}
		if len(w.ran("c")) != 0 {
			t.Error("c was started although two results wait")
		}
		refused.Remove()
		w.until(2 * time.Minute)
		for _, row := range [][2]string{{"a", "10 success"}, {"b", "20 success"}, {"c", "30 late success"}} {
			w.want(row[0], row[1])
		}
	})
}

// A result waits while something is to be started, but not for ever, nor in a crowd.
func TestResultsWaitForStartsWithinBounds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("slow", `{"schedule":"@at 2000-01-01T00:00:05Z","cmd":["slow","1m"]}`)
		for name, at := range map[string]string{"a": "10", "b": "20", "c": "20"} {
			w.add(name, `{"schedule":"@at 2000-01-01T00:00:`+at+`Z","cmd":["true"]}`)
		}
		w.node("x", func(o *Options) { o.MaxRunning = 4 })
		w.until(10*time.Second + 900*time.Millisecond)
		if len(w.ran("a")) != 1 {
			t.Fatal("a was not started")
		}
		w.want("a")
		w.until(11*time.Second + 300*time.Millisecond)
		w.want("a", "10 success")
		w.until(20*time.Second + 300*time.Millisecond) // two are half of what there is room for
		w.want("b", "20 success")
		w.want("c", "20 success")
		w.until(2 * time.Minute)
		w.want("slow", "5 late success")
	})
}

// A burst is told of when it begins, and when all of it was started.
func TestABurstIsToldOf(t *testing.T) {
	inWorld(t, func(w *world) {
		var told []bool
		w.add("early", `{"schedule":"@at 2000-01-01T00:00:05Z","cmd":["true"]}`)
		for i := range 100 {
			w.add("j"+strconv.Itoa(i), `{"schedule":"@at 2000-01-01T00:00:10Z","cmd":["slow","100ms"]}`)
		}
		w.node("x", func(o *Options) { o.Busy = func(busy bool) { told = append(told, busy) } })
		w.until(9 * time.Second)
		if len(told) != 0 {
			t.Errorf("told %v of one job", told)
		}
		w.until(20 * time.Second)
		if !slices.Equal(told, []bool{true, false}) {
			t.Errorf("told %v, want that it begins and that it ends", told)
		}
		for i := range 100 {
			w.want("j"+strconv.Itoa(i), "10 success")
		}
	})
}

func TestRunOnAllRunsOnEveryHost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["sleep","4s"],"run_on":"all"}`)
		w.node("a")
		w.node("b")
		w.until(25 * time.Second)
		w.node("c")
		w.until(39 * time.Second)
		w.want("j", "10@a success", "10@b success", "20@a success", "20@b success", "30@a success", "30@b success", "30@c success")
	})
}

func TestAKillEndsARun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@at 2000-01-01T00:01:00Z","cmd":["sleep","30m"],"run_ttl":"1h"}`)
		w.node("a")
		w.until(time.Minute + time.Minute)
		id := record.ID{Tick: w.start.Unix() + 60}
		_, err := w.m.Put(record.Key(record.Kills, "j", id), `{"by":"ann@host","why":"too loud"}`, 0)
		w.must(err)
		w.until(time.Minute + time.Minute + time.Second)
		w.want("j", "60 killed kill")
		if r := w.results("j")[0]; r.Detail != "by ann@host: too loud" {
			t.Errorf("detail %q", r.Detail)
		}
		if left := w.m.Keys(record.State); len(left) != 1 {
			t.Errorf("left behind: %q", left)
		}
	})
}

func TestADaemonThatIsToEndLetsItsRunsFinish(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("short", `{"schedule":"@at 2000-01-01T00:00:10Z","cmd":["sleep","20s"]}`)
		w.add("long", `{"schedule":"@at 2000-01-01T00:00:10Z","cmd":["sleep","10m"]}`)
		w.add("next", `{"schedule":"@every 20s","cmd":["true"]}`)
		a := w.node("a")
		w.until(15 * time.Second)
		a.leave()
		if d := time.Since(w.start); d < 45*time.Second || d > 47*time.Second {
			t.Errorf("it took until %v", d)
		}
		w.want("short", "10 success")
		w.want("long", "10 killed shutdown")
		w.want("next")
		if left := append(w.m.Keys(record.State), w.m.Keys(record.Nodes)...); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

func TestRequestsAreMet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@manual","cmd":["sleep","5s"]}`)
		w.node("a")
		w.until(time.Minute)
		now := w.start.Unix() + 60
		want := func(n int, v string) {
			_, err := w.m.Put(record.Key(record.Wants, "j", record.ID{Tick: now, N: n}), v, 0)
			w.must(err)
		}
		want(1, `{"kind":"manual","attempt":1,"by":"ann"}`)
		want(2, `{"kind":"backfill","attempt":1}`)
		want(3, `{"kind":"manual","attempt":1,"until_ms":`+ms(w.start.Add(63*time.Second))+`}`)
		w.until(75 * time.Second)
		w.want("j", "60.1 manual success", "60.2 backfill success", "60.3 manual missed start_deadline")
		if w.most["j"] != 1 {
			t.Errorf("%d at once", w.most["j"])
		}
	})
}

// Red when room for one start is claimed for at once in a crowd: then each claim goes to etcd alone.
func TestACrowdIsClaimedForByDozens(t *testing.T) {
	n := &node{}
	for _, step := range []struct {
		starts int
		want   bool
	}{{startsMost - 1, false}, {startsMost, true}, {startsMost - 1, true}, {startsAgain + 1, true}, {startsAgain, false}, {startsAgain + 1, false}} {
		n.starts = step.starts
		if got := n.crowded(); got != step.want {
			t.Errorf("with %d starts: %v, want %v", step.starts, got, step.want)
		}
	}
}
