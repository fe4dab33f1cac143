package cron

import (
	"context"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
)

func ms(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func TestALostReplyStartsOnce(t *testing.T) {
	for name, action := range map[string]coordtest.Action{
		"reply":   coordtest.LoseReply(nil),
		"request": coordtest.LoseRequest(),
		"late":    coordtest.LateBy(4 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.add("j", `{"schedule":"@every 1m","cmd":["sleep","5s"]}`)
				w.node("a")
				w.node("b")
				w.until(50 * time.Second)
				w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(record.Fires), Action: action})
				w.until(115 * time.Second)
				// Whose reply was lost has it, and finds that out in time; whose request was, may be passed by another.
				if got := w.ran("j"); len(got) > 1 || name == "reply" && len(got) != 1 {
					t.Errorf("started %v", got)
				}
				if got := w.results("j"); len(got) != 1 {
					t.Errorf("results %v", got)
				}
				if left := w.m.Keys(record.Opens); len(left) != 0 {
					t.Errorf("left open: %q", left)
				}
				w.until(175 * time.Second)
				if got := w.results("j"); len(got) != 2 || got[1].Status != record.Success {
					t.Errorf("results %v", got)
				}
			})
		})
	}
}

// Its node had looked, found nothing, and was about to ask again. Red when such a claim is left open: under forbid the job would
// stand still for as long as the session lives.
func TestAClaimThatLandsWhenNobodyWaitsIsClosed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 1m","cmd":["true"]}`)
		w.node("a")
		w.until(50 * time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(record.Fires), Action: coordtest.LateBy(askFor + shyFor/2)})
		w.until(125 * time.Second)
		w.want("j", "60 missed unconfirmed", "120 success")
		if got := w.ran("j"); len(got) != 1 {
			t.Errorf("started %v", got)
		}
	})
}

func TestAClaimThatTakesLongIsALateStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 1m","cmd":["true"]}`)
		w.node("a")
		w.until(50 * time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(record.Fires), Times: 1, Action: coordtest.Delay(1500 * time.Millisecond)})
		w.until(125 * time.Second)
		w.want("j", "60 late success", "120 success")
		for i, kind := range []record.Kind{record.Late, record.Scheduled} {
			if got := w.ran("j"); len(got) != 2 || got[i].kind != kind {
				t.Errorf("started %+v, want %s", got, kind)
			}
		}
	})
}

func TestAPauseIsABarrier(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["true"]}`)
		w.node("a")
		w.node("b")
		w.until(25 * time.Second)
		_, err := w.m.Put(record.Pause, `{"by":"ann","at_ms":`+ms(time.Now())+`}`, 0)
		w.must(err)
		w.until(55 * time.Second)
		w.want("j", "10 success", "20 success")
		_, err = w.m.Put(record.Pause, `{"by":"ann","at_ms":1,"resumed_ms":`+ms(time.Now())+`}`, 0)
		w.must(err)
		w.until(65 * time.Second)
		w.want("j", "10 success", "20 success", "50 3x from 30 skipped paused", "60 success")
	})
}

func TestAPausedJobSaysWhatItLeftOut(t *testing.T) {
	inWorld(t, func(w *world) {
		spec := `{"schedule":"@every 10s","cmd":["true"],"catchup":{"policy":"all","window":"1h"}`
		w.add("j", spec+`}`)
		w.node("a")
		w.until(25 * time.Second)
		w.add("j", spec+`,"paused":{"by":"ann","at":"2000-01-01T00:00:25Z"}}`)
		w.until(55 * time.Second)
		w.add("j", spec+`,"resumed_at":"2000-01-01T00:00:55Z"}`)
		w.until(56 * time.Second)
		w.want("j", "10 success", "20 success", "50 3x from 30 skipped paused")
		w.until(65 * time.Second)
		w.want("j", "10 success", "20 success", "50 3x from 30 skipped paused", "60 success")
	})
}

func TestCatchUpAfterAnOutageOfAll(t *testing.T) {
	for policy, want := range map[string][]string{
		`"none"`:                          {"60 success", "1020 16x from 120 missed start_deadline", "1080 success"},
		`{"policy":"last","window":"1h"}`: {"60 success", "960 15x from 120 missed start_deadline", "1020 catchup success", "1080 success"},
		`{"policy":"all","window":"1h","max":3}`: {
			"60 success", "840 13x from 120 missed start_deadline", "900 catchup success", "960 catchup success", "1020 catchup success", "1080 success",
		},
		`{"policy":"all","window":"2m"}`: {"60 success", "900 14x from 120 missed start_deadline", "960 catchup success", "1020 catchup success", "1080 success"},
	} {
		t.Run(policy, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.add("j", `{"schedule":"* * * * *","cmd":["sleep","1s"],"catchup":`+policy+`}`)
				w.node("a").leaveAt(90 * time.Second)
				w.until(1055 * time.Second)
				w.node("b")
				w.node("c")
				w.until(1100 * time.Second)
				w.want("j", want...)
				if w.most["j"] != 1 {
					t.Errorf("%d at once", w.most["j"])
				}
			})
		})
	}
}

func (h *machine) leaveAt(at time.Duration) {
	h.w.until(at)
	h.leave()
}

func TestAnEditFiresNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		const rest = `"cmd":["true"],"catchup":{"policy":"all","window":"24h"}`
		w.add("j", `{"schedule":"30 * * * *",`+rest+`}`)
		a := w.node("a")
		w.until(12 * time.Minute)
		// From half past to five past; and the same again.
		spec := `{"schedule":"5 * * * *",` + rest + `,"schedule_since":"2000-01-01T00:12:00Z"}`
		w.add("j", spec)
		w.until(13 * time.Minute)
		w.add("j", spec)
		w.until(14 * time.Minute)
		w.want("j")
		// Nor where whoever wrote it did not say since when it counts.
		w.add("j", `{"schedule":"6 * * * *",`+rest+`}`)
		w.until(15 * time.Minute)
		a.leave()
		w.node("b")
		w.until(66*time.Minute - time.Second)
		w.want("j")
		w.until(67 * time.Minute)
		w.want("j", "3960 success")
	})
}

func TestEtcdThatIsSilentCostsTheRunsAndNotTheDaemon(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 1m","cmd":["sleep","30s"]}`)
		w.node("a")
		w.until(65 * time.Second)
		w.m.NoQuorum(true)
		w.until(85 * time.Second)
		if w.alive["j"] != 0 {
			t.Error("it runs on without a lease")
		}
		w.m.NoQuorum(false)
		w.until(155 * time.Second)
		w.want("j", "60 lost session_lost", "120 success")
	})
}

func TestADaemonThatIsStartedAgainOutlastsTroubleOfEtcd(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.node("a")
		w.until(12 * time.Second)
		a.kill(true)
		// The next one has a session, waits for what the first one left, and hears nothing more until that session is lost.
		go func() {
			time.Sleep(2 * time.Second)
			w.m.NoQuorum(true)
			time.Sleep(20 * time.Second)
			w.m.NoQuorum(false)
		}()
		w.node("a")
		if d := time.Since(w.start); d < 34*time.Second {
			t.Errorf("it was registered after %v, before etcd was back", d)
		}
	})
}

// Red when a start is launched whatever became of its marker: nobody then keeps another one from running beside it.
func TestAMarkerThatIsGoneBeforeTheClaimIsAnsweredStartsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["sleep","1m"],"run_ttl":"1h"}`)
		w.node("a")
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(record.Fires), Action: coordtest.After(func() {
			w.m.Delete(record.Key(record.Runs, "j", record.ID{Tick: w.start.Unix() + 10}))
			time.Sleep(time.Second) // the news of that is faster than the answer
		})})
		w.until(25 * time.Second)
		w.want("j", "10 missed session_lost")
		if got := w.ran("j"); len(got) != 1 || got[0].id.Tick != w.start.Unix()+20 {
			t.Errorf("started %v, want the tick at 20 s only", got)
		}
	})
}

func TestARevokedLeaseAndADeletedMarkerAreLosses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 1m","cmd":["sleep","30s"]}`)
		w.node("a")
		w.until(65 * time.Second)
		for _, l := range w.m.Leases() {
			for _, key := range w.m.Keys(record.Nodes) {
				if clientv3.LeaseID(w.m.Get(key).Lease) == l.ID {
					w.must(w.m.Revoke(l.ID))
				}
			}
		}
		w.until(125 * time.Second)
		w.m.Delete(record.Key(record.Runs, "j", record.ID{Tick: w.start.Unix() + 120}))
		w.until(185 * time.Second)
		w.want("j", "60 lost session_lost", "120 lost session_lost")
		w.until(215 * time.Second)
		w.everyTick("j", 60, 180, 60)
	})
}

// Red when a start is taken away without its result: whoever keeps that may end before there is space.
func TestARunThatEndedWhileEtcdWasFullIsNeverSilent(t *testing.T) {
	for how, leave := range map[string]func(h *machine){
		"stopped": func(h *machine) { h.leave() },
		"killed":  func(h *machine) { h.kill(true) },
		"dead":    func(h *machine) { h.kill(false) },
	} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.add("j", `{"schedule":"@at 2000-01-01T00:01:00Z","cmd":["sleep","10s"],"select":{"disk":"ssd"}}`)
				a := w.node("a", func(o *Options) { o.Labels = map[string]string{"disk": "ssd"} })
				w.node("b")
				w.until(65 * time.Second)
				w.m.NoSpace(true)
				w.until(75 * time.Second)
				leave(a)
				w.until(3 * time.Minute)
				w.want("j")
				w.m.NoSpace(false)
				w.until(5 * time.Minute)
				w.want("j", "60 lost node_gone")
			})
		})
	}
}

func TestNoSpace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 1m","cmd":["sleep","10s"]}`)
		w.node("a")
		w.until(65 * time.Second)
		w.m.NoSpace(true)
		w.until(75 * time.Second)
		// It stands until it is said how it ended, or its daemon goes and a peer says that it was lost.
		if left := append(w.m.Keys(record.Opens), w.m.Keys(record.Runs)...); len(left) != 2 {
			t.Errorf("left: %q", left)
		}
		w.want("j")
		w.until(170 * time.Second)
		w.m.NoSpace(false)
		w.until(185 * time.Second)
		w.want("j", "60 success", "120 missed start_deadline")
	})
}

func TestANodeWhoseClockIsOffClaimsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.node("a")
		w.node("b")
		c := w.node("c")
		w.until(30 * time.Second)
		c.step(20 * time.Second)
		w.until(65 * time.Second)
		w.add("j", `{"schedule":"@every 10s","cmd":["true"]}`)
		w.until(125 * time.Second)
		w.everyTick("j", 70, 120, 10)
		for _, b := range w.ran("j") {
			if b.host == "c" {
				t.Errorf("c started %v", b.id)
			}
		}
		// And again once it is right.
		c.step(-20 * time.Second)
		w.until(10 * time.Minute)
		by := map[string]int{}
		for _, b := range w.ran("j") {
			by[b.host]++
		}
		if by["c"] == 0 || by["a"] == 0 || by["b"] == 0 {
			t.Errorf("starts by host: %v", by)
		}
	})
}

func TestAClockThatIsSetMissesNothingTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"* * * * *","cmd":["true"]}`)
		a := w.node("a")
		w.until(65 * time.Second)
		a.step(time.Hour)
		w.until(85 * time.Second)
		want := []string{"60 success", "3600 59x from 120 missed start_deadline", "3660 late success"}
		w.want("j", want...)
		a.step(-time.Hour)
		w.until(10 * time.Minute)
		w.want("j", want...)
	})
}

func TestTheHistoryOfABusyJobIsBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 1s","cmd":["sleep","1500ms"],"history":{"ok":20,"failed":10}}`)
		w.node("a", slowly)
		w.until(20 * time.Minute)
		got := map[record.Status]int{}
		for _, r := range w.results("j") {
			got[r.Status]++
		}
		if got[record.Success] > 20+2*pruneEvery || got[record.Skipped] > 10+2*pruneEvery {
			t.Errorf("results: %v", got)
		}
		if n := len(w.m.Keys(record.Fires)); n > 20*60 {
			t.Errorf("%d claims", n)
		}
	})
}

func TestAnOptionThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Host: "a b"}, {Host: "a", MaxRunning: -1}, {Host: "a", MaxSkew: 1}} {
		if err := Run(context.Background(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestAClaimThatIsAnsweredTooLateStartsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["true"],"start_deadline":"1s"}`)
		w.node("a")
		w.until(8 * time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(record.Fires), Action: coordtest.Delay(2 * time.Second)})
		w.until(25 * time.Second)
		w.want("j", "10 missed late_claim", "20 success")
		w.everyTick("j", 20, 20, 10)
	})
}

// Somebody wrote nonsense there: nobody knows what was decided, and nothing that is over is started for that.
func TestACursorThatCannotBeReadStartsNothingAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["true"],"catchup":{"policy":"all","window":"24h"},"schedule_since":"1999-12-31T23:00:00Z"}`)
		_, err := w.m.Put(record.CursorKey("j", ""), `{"tick":946684800,"host":"a"}`, 0)
		w.must(err)
		a := w.node("a")
		w.until(25 * time.Second)
		_, err = w.m.Put(record.CursorKey("j", ""), `9999999999`, 0)
		w.must(err)
		w.until(45 * time.Second)
		w.want("j", "10 success", "20 success", "30 success", "40 success")
		_, err = w.m.Put(record.CursorKey("j", ""), `nonsense`, 0)
		w.must(err)
		a.leave()
		w.until(55 * time.Second)
		w.node("b")
		w.until(65 * time.Second)
		w.want("j", "10 success", "20 success", "30 success", "40 success", "60 success")
	})
}
