package command

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

func TestCronKillEndsWhatRunsAndNothingElse(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@manual","cmd":["hang"],"overlap":"allow"}`)
	c.node("node1")
	c.says(0, "run", "x", "--within", "1h")
	one := c.hung("x")
	c.says(0, "run", "x", "--within", "1h")
	two := c.hung("x")

	c.lines(c.says(0, "kill", "x", one, "--wait", "--why", "it is stuck"), "x/"+one+": killed on node1: an operator asked for its end (by ...@...: it is stuck); ...")
	c.lines(c.says(0, "ps", "x"), "JOB...", "x ..."+two+"...running...manual...")
	var r record.Result
	if err := json.Unmarshal([]byte(c.says(0, "kill", "x", "--wait", "--json")), &r); err != nil || r.RunID != "x/"+two || r.Status != record.Killed {
		t.Errorf("%+v %v", r, err)
	}
	c.lines(c.refuses(1, "kill", "x"), "nothing of x runs")
	c.lines(c.refuses(1, "kill", "x", one), "nothing of x/"+one+" runs")
	c.lines(c.says(1, "ps"), "nothing runs, and nothing waits to run")
}

// What is asked for is said, and that of several starts of a tick each is meant.
func TestCronKillAsksWhoRunsIt(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	lease, err := c.client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	o := record.Open{Host: "node1", Lease: int64(lease.ID), TTL: 10_000, Kind: record.Scheduled, Attempt: 1}
	c.start("x", "1000", o)
	c.start("x", "1000.1", o)
	c.start("x", "2000", o)
	c.start("gone", "1000", record.Open{Host: "node9", Lease: 7, TTL: 10_000, Kind: record.Scheduled, Attempt: 1})
	c.put(record.Wants+"waits/3000.1", record.Encode(record.Want{Kind: record.Queued, Attempt: 1}))

	c.lines(c.says(0, "kill", "x", "1000", "--why", "so"), "x/1000: node1 was asked to end it", "x/1000.1: node1 was asked to end it")
	got, err := c.client.Get(t.Context(), record.Kills+"x/1000.1")
	if err != nil || len(got.Kvs) != 1 || clientv3.LeaseID(got.Kvs[0].Lease) != lease.ID {
		t.Fatalf("%v %v: it has to go with the daemon", got, err)
	}
	if k, ok := record.Decode[record.Kill](got.Kvs[0].Value); !ok || k.Why != "so" || k.Reason != record.ReasonKill || !strings.Contains(k.By, "@") {
		t.Errorf("%s", got.Kvs[0].Value)
	}
	if c.exists(record.Kills + "x/2000") {
		t.Error("another tick was asked to end")
	}
	c.lines(c.says(0, "ps", "x"), "JOB...", "x 1000 ending scheduled 1 node1 - - ... ...@...: so", "x 1000.1 ending ...", "x 2000 running ... -")
	c.lines(c.says(0, "kill", "x", "2000", "-o", "json"), `{"job":"x","id":"2000","state":"ending","kind":"scheduled",...`)
	c.lines(c.refuses(1, "kill", "gone"), "the daemon of 1000 on node9 is gone, and with it what it ran; another one says so within its ttl")
	c.lines(c.refuses(1, "kill", "waits"), "nothing of waits runs; 3000.1 (queued) waits to be started")
}

func TestCronPauseIsABarrierAndSaysWhatRunsYet(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@every 1s","cmd":["hang"],"description":"as it was"}`)
	c.node("node1")
	id := c.hung("x")
	c.lines(c.says(0, "pause", "x", "--why", "the disk"), "x is paused: nothing is started after revision ..., until somebody resumes", "  x/"+id+" goes on, on node1 (running)")
	close(c.release)
	awaits(t, func() bool { return c.exists(record.Results + "x/" + id) }) // else it goes on under the next pause too
	c.lines(c.says(0, "why", "x", id), "x/"+id+" ...: ...")
	got, err := c.client.Get(t.Context(), record.JobKey("x"))
	if err != nil || !strings.Contains(string(got.Kvs[0].Value), `"description":"as it was"`) {
		t.Fatalf("%v %v", got, err)
	}

	// A pause that is there is replaced, and the other kind stays.
	c.lines(c.says(0, "pause", "x", "--for", "2h"), "x is paused until 20...: nothing is started after revision ...")
	var l pauseLine
	if err := json.Unmarshal([]byte(c.says(0, "pause", "--all", "--why", "power", "--json")), &l); err != nil || !l.Paused || l.Was || l.Pause.Why != "power" || l.Rev == 0 {
		t.Errorf("%+v %v", l, err)
	}
	c.lines(c.says(0, "resume", "x"), "x is resumed: it was paused by ...@..., until ...")
	c.lines(c.says(0, "resume", "x"), "x is not paused")
	c.lines(c.says(0, "resume", "--all"), "all jobs are resumed: they were paused by ...@...: power, ...")
	c.lines(c.says(0, "resume", "--all"), "all jobs are not paused")
	if !c.exists(record.Pause) {
		t.Error("the end of the pause is forgotten, and with it what was due meanwhile")
	}
	c.lines(c.says(1, "pause", "x", "y"), "x is paused: ...") // what was done before it failed is said
}

func TestCronBackfillAsksForEachTickOfThePast(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"0 * * * *","cmd":["true"],"tz":"Europe/Berlin"}`)
	args := []string{"backfill", "x", "--from", "2026-01-01 00:00", "--to", "2025-12-31T23:59:59Z"}
	c.lines(c.refuses(64, "backfill", "x", "--from", "2026-01-02", "--to", "0"), `usage: --from "2026-01-02": want unix seconds, ...`)
	c.lines(c.says(0, append(args, "--dry-run")...), "x/1767222000 (2025-12-31T23:00:00Z, 2026-01-01 00:00:00 CET) would be asked for")
	c.lines(c.says(0, args...), "x/1767222000.1: asked for, of tick 1767222000 (...)")
	c.lines(c.says(0, append(args, "-o", "json")...), `{"job":"x","tick":1767222000,"time":"2026-01-01T00:00:00+01:00","id":"1767222000.2"}`)
	c.lines(c.refuses(64, "backfill", "x", "--from", "0", "--to", "86400", "--max", "24"), "usage: --max 24: there are more ticks from 1970-01-01T00:00:00Z to ...")
	c.lines(c.refuses(64, "backfill", "x", "--from", "10", "--to", "5"), "usage: --to 1970-01-01T00:00:05Z: is before --from ...")
	c.lines(c.refuses(64, "backfill", "x", "--from", "10", "--to", "253402300799"), "usage: --to 9999-12-31T23:59:59Z: is to come, ...")
	c.lines(c.refuses(1, "backfill", "x", "--from", "10", "--to", "20"), "x has no tick from ...")
	c.lines(c.refuses(64, "backfill", "x", "--from", "10"), "usage: --to is missing: want ...")
	c.lines(c.refuses(64, "backfill", "x", "--to", "10"), "usage: --from is missing: want ...")

	c.says(0, "pause", "x")
	c.lines(c.refuses(75, args...), "job x is paused ...")
	c.says(0, "resume", "x")
	c.node("node1")
	w := c.shell()
	if code := wait(t, w.start("cron", "run", "x", "--wait")); code != 0 {
		t.Fatal(code, w.stderr.String())
	}
	awaits(t, func() bool {
		return c.exists(record.Results+"x/1767222000.1") && c.exists(record.Results+"x/1767222000.2")
	})
	c.lines(c.says(0, "log", "x", "1767222000"), "so it went", "so it went")
}

func TestCronDrainHasANodeClaimNothingMore(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@manual","cmd":["hang"]}`)
	c.lines(c.says(0, "drain", "node1"), "node1 is drained: it claims nothing after revision ..., and 0 runs go on there; no daemon is registered there")
	c.lines(c.says(1, "nodes"), "HOST ...", "node1 ...down...by ...@...")
	c.lines(c.says(0, "undrain", "node1"), "node1 is not drained any more: it was by ...@..., 20...; no daemon is registered there")
	c.lines(c.says(0, "undrain", "node1"), "node1 is not drained; no daemon is registered there")
	c.node("node1")
	c.says(0, "run", "x", "--within", "1h")
	c.hung("x")

	s := c.shell()
	code := s.start("cron", "drain", "node1", "--why", "new kernel", "--wait")
	awaits(t, func() bool { return strings.Contains(s.stderr.String(), "msg=drained") })
	contains(t, s.stderr.String(), "running=1")
	close(c.release)
	if got := wait(t, code); got != 0 {
		t.Errorf("code %d; %s", got, s.stderr.String())
	}
	c.lines(s.stdout.String(), "node1 is drained: it claims nothing after revision ..., and 0 runs go on there")

	c.lines(c.says(1, "run", "x", "--wait", "--within", "10ms"), "x/...: missed, says node1: each node that matched was full, drained, ...")
	var l drainLine
	if err := json.Unmarshal([]byte(c.says(0, "drain", "node1", "--json")), &l); err != nil || l.Was == nil || l.Was.Why != "new kernel" || !l.Up {
		t.Errorf("%+v %v", l, err)
	}

	impatient := c.shell()
	c.start("y", "1000", record.Open{Host: "node1", Lease: 7, TTL: 10_000, Kind: record.Scheduled, Attempt: 1})
	code = impatient.start("cron", "drain", "node1", "--wait")
	awaits(t, func() bool { return strings.Contains(impatient.stderr.String(), "msg=drained") })
	impatient.signals <- syscall.SIGINT
	if got := wait(t, code); got != 128+2 {
		t.Errorf("code %d", got)
	}
}

func TestCronNodesSaysWhatThereIsToKnow(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.lines(c.says(1, "nodes"), "no node is registered")
	registered := `{"host_uuid":"h","version":"1.2.3","labels":{"zone":"a","rack":"r1"}}`
	now := time.Now()
	card := func(host string, clock time.Time, change func(*record.Card)) {
		r := record.Card{Host: host, Clock: clock.UnixMilli(), Zones: "2026a", Running: 2, MaxRunning: 5, User: "root", Users: []string{"www"}}
		if change != nil {
			change(&r)
		}
		c.put(record.Nodes+host, registered)
		c.put(record.Cards+host, record.Encode(r))
	}
	card("a", now, nil)
	card("b", now.Add(-time.Hour), func(r *record.Card) { r.Unfit = "clock is off by 1h0m0s" })
	card("c", now.Add(2*time.Hour), func(r *record.Card) { r.Stopping = true })
	c.put(record.Nodes+"d", registered)
	c.says(0, "drain", "a", "--why", "kernel")
	c.says(0, "pause", "--all")
	c.lines(c.says(0, "nodes"),
		"HOST STATE VERSION RUNNING USERS CLOCK TZDATA LABELS DRAINED UNFIT",
		"a up 1.2.3 2/5 root,www ok 2026a rack=r1,zone=a by ...@...: kernel, 20...Z -",
		"b up 1.2.3 2/5 root,www 59m...s behind 2026a rack=r1,zone=a - clock is off by 1h0m0s",
		"c stopping 1.2.3 2/5 root,www ...h...m...s ahead 2026a rack=r1,zone=a - -",
		"d up 1.2.3 - - - - rack=r1,zone=a - -",
		"all jobs are paused by ...@..., 20...Z",
	)
	lines := strings.Split(c.says(0, "nodes", "-o", "json"), "\n")
	var l nodeLine
	if err := json.Unmarshal([]byte(lines[1]), &l); err != nil || l.Host != "b" || l.ClockLeast > -3_600_000 || l.ClockMost > -3_500_000 || l.Drained != nil || l.Unfit == "" {
		t.Errorf("%+v %v", l, err)
	}
}

// A pause that was said is not followed by a claim, and neither is a drain of all nodes. Another job shows that time passes.
func TestNothingIsClaimedAfterAPauseThatWasSaid(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@every 1s","cmd":["true"]}`)
	c.add("clock", `{"schedule":"@every 1s","cmd":["hang"],"overlap":"allow"}`)
	c.node("node1")
	c.node("node2")
	c.hung("clock")
	awaits(t, func() bool { return strings.Contains(c.shellSays("history", "x", "--json"), `"status":"success"`) })
	revision := func(args ...string) int64 {
		t.Helper()
		var l pauseLine
		if err := json.Unmarshal([]byte(c.says(0, append(args, "--json")...)), &l); err != nil || l.Rev == 0 {
			t.Fatal(l, err)
		}
		return l.Rev
	}
	from := revision("pause", "x")
	for range 3 {
		c.hung("clock")
	}
	until := revision("resume", "x")
	awaits(t, func() bool {
		last := ""
		for line := range strings.Lines(c.shellSays("history", "x", "--json", "-n", "1000")) {
			var r record.Result
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if r.Rev > from && r.Rev < until {
				t.Errorf("%s was claimed at %d, in the pause from %d to %d", r.RunID, r.Rev, from, until)
			}
			if r.Rev > until || r.Reason == record.ReasonPaused {
				last += string(r.Status) + " "
			}
		}
		return strings.HasPrefix(last, "skipped success ")
	})
	close(c.release)
}
