package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

const hourly = `{"schedule":"0 * * * *","cmd":["true"],"schedule_since":"2020-01-01T00:00:00Z"`

// registered puts a node that would run what it may.
func (c *cronCluster) registered(host, labels string, change func(*record.Card)) {
	c.Helper()
	r := record.Card{Host: host, Clock: time.Now().UnixMilli(), Zones: "2026a", MaxRunning: 5, User: "root"}
	if change != nil {
		change(&r)
	}
	c.put(record.Nodes+host, `{"host_uuid":"`+host+`","labels":`+labels+`}`)
	c.put(record.Cards+host, record.Encode(r))
}

func TestCronWhySaysWhatBecameOfAMoment(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", hourly+`,"select":{"zone":"a"},"user":"www"}`)
	c.put(record.CursorKey("x", ""), `{"tick":1805032800}`)
	c.result("x", "1805007600", ended(record.Failed, record.ReasonRunTTL))
	covering := ended(record.Missed, record.ReasonCapacity)
	covering.From, covering.Ticks = 1805018400, 3
	c.result("x", "1805025600", covering)
	c.start("x", "1805029200", record.Open{Host: "node1", TTL: 10_000, Kind: record.Late, Attempt: 1, At: time.Now().UnixMilli(), By: "me@desk"})
	c.put(record.OpenKey("x", record.ID{Tick: 1805029200, N: 1}), record.Encode(record.Open{Host: "node2", TTL: 10_000, Kind: record.Retry}))
	c.put(record.Wants+"x/1805029200.2", record.Encode(record.Want{Kind: record.Retry, Attempt: 3, After: 4e12, Until: 5e12, By: "me@desk: so"}))
	for _, tt := range [][]string{
		{"1805007600", "x/1805007600 (2027-03-14T07:00:00Z): failed on node1: it took longer than its run_ttl, and was ended; started 120ms after it was due, ran 2.5s"},
		{"2027-03-14T07:00:00Z", "x/1805007600 (...): failed ..."},
		{"2027-03-14 07:00", "x/1805007600 (...): failed ..."},
		{"2027-03-14T07:00:01", "x/1805007601 (...): not a tick of this schedule; the nearest before is 1805007600 (2027-03-14T07:00:00Z); the nearest after is 1805011200 (2027-03-14T08:00:00Z)"},
		{"1805011200", "x/1805011200 (...): decided, and its record has gone: ..."},
		{"1805022000", "x/1805025600 (2027-03-14T11:00:00Z): one of the ticks of a record: missed, says node1: each node that matched ... (3 ticks, from 2027-03-14T10:00:00Z to 2027-03-14T12:00:00Z)"},
		{
			"1805029200", "x/1805029200 (...): claimed by node1 ...s ago, and still running; asked for by me@desk",
			"x/1805029200.1 (...): claimed by node2 ...; its run marker is gone, and nobody has said how it ended: a node will settle it 10s after it noticed",
			"x/1805029200.2 (...): waits to be started (retry), not before 2096-10-02T07:06:40Z, recorded as missed after 2128-06-11T08:53:20Z; asked for by me@desk: so; no node is registered",
		},
		{"1805029200.2", "x/1805029200.2 (...): waits ..."},
		{"946684800", "x/946684800 (...): no tick: the schedule is as it is since 2020-01-01T00:00:00Z; no tick before; the nearest after is ..."},
		{"1805036400", "x/1805036400 (...): due in ...; no node is registered"},
	} {
		c.lines(c.says(0, "why", "x", tt[0]), tt[1:]...)
	}

	c.registered("node1", `{"zone":"a"}`, func(r *record.Card) { r.Users = []string{"www"} })
	c.lines(c.says(0, "why", "x", "1805036400"), "x/1805036400 (...): due in ...; will be run by node1")
	c.registered("node2", `{"zone":"b"}`, nil)
	c.registered("node3", `{"zone":"a"}`, func(r *record.Card) { r.Users = []string{"*"} })
	c.says(0, "drain", "node1", "--why", "kernel")
	c.lines(c.says(0, "why", "x", "1805036400"), "x/1805036400 (...): due in ...; will be run by node3",
		"node1 is drained by ...@...: kernel", "node2 has zone=b, not a; runs jobs as root only, not as www")
	c.says(0, "undrain", "node1")
	c.lines(c.says(0, "why", "x", "1805036400"), "... will be run by one of node1, node3", "node2 ...")

	var l accountLine
	if err := json.Unmarshal([]byte(c.says(0, "why", "x", "1805036400", "-o", "json")), &l); err != nil || l.What != plan.Future || len(l.Nodes) != 3 || len(l.Nodes[1].Lacks) != 2 || l.Due != "2027-03-14T15:00:00Z" {
		t.Errorf("%+v %v", l, err)
	}
	c.says(0, "pause", "x", "--why", "the disk")
	c.lines(c.says(0, "why", "x", "1805036400"), "... due in ..., and not to be started: the job is paused by ...@...: the disk, ...", "...")
	if err := json.Unmarshal([]byte(c.says(0, "why", "x", "1805036400", "-o", "json")), &l); err != nil || l.Stop == nil || l.Stop.Why != "the disk" {
		t.Errorf("%+v %v", l, err)
	}
	c.says(0, "pause", "--all")
	c.lines(c.says(0, "why", "x", "1805036400"), "... all jobs are paused by ...@...", "...")
}

// Without a moment it is the last tick and the next one: whatever the time is, there is one of each.
func TestCronWhyOfNow(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", hourly+`,"tz":"Asia/Tokyo"}`)
	c.add("never", `{"schedule":"@manual","cmd":["true"]}`)
	c.lines(c.says(0, "why", "x"), "x/... (...Z, ... JST): ...", "x/... (...Z, ... JST): due in ...; no node is registered")
	c.lines(c.says(0, "why", "never"), "never has no ticks, and nothing of it is known: conch cron run starts it")
	c.result("never", "1805007600.1", ended(record.Success, record.ReasonNone))
	c.start("never", "1805007602.1", record.Open{Host: "node1", Kind: record.Manual, Attempt: 1})
	c.put(record.Wants+"never/1805007602.2", `{"kind":"manual"}`)
	c.lines(c.says(0, "why", "never"), "never/1805007600.1 ... success on node1...", "never/1805007602.1 ... still running", "never/1805007602.2 ... waits to be started (manual); ...")
	c.lines(c.refuses(64, "why", "x", "noon"), `usage: "noon": want unix seconds, ...`)
	c.lines(c.refuses(64, "why", "x", "12.0"), `usage: "12.0": want an id ...`)
	c.lines(c.refuses(64, "why"), "usage: no job given: conch cron why NAME [TICK|TIME] [flags]")
	c.lines(c.refuses(1, "why", "y"), "there is no job y; did you mean x?")
}

// What is due now, and what nobody has recorded, is told with what keeps the nodes from it.
func TestAnAccountInWords(t *testing.T) {
	t.Parallel()
	at := time.Unix(1805007600, 0)
	k := &pictured{Picture: &plan.Picture{}, name: "x", where: time.UTC}
	for _, tt := range []struct {
		a    plan.Account
		want string
	}{
		{plan.Account{What: plan.Due}, "due since 5s, and waiting until 2027-03-14T07:01:00Z; no node is registered"},
		{plan.Account{What: plan.Due, Start: &plan.Pictured{Open: plan.Open{ID: record.ID{Tick: 7}, Open: record.Open{Host: "a"}}}}, "a run is in its way: 7 on a; no node"},
		{plan.Account{What: plan.Due, Nodes: []plan.Judged{{Host: "a", Lacks: []string{"is full"}}}}, "no node would claim it, as of now\n  a is full\n"},
		{plan.Account{What: plan.Due, Nodes: []plan.Judged{{Host: "a"}, {Host: "b"}, {Host: "c"}, {Host: "d"}, {Host: "e"}}}, "up to one of a, b, c"},
		{plan.Account{What: plan.Overdue}, "its time has passed, and nobody has recorded that yet"},
		{plan.Account{What: plan.Unseen}, "no node has decided anything about this job yet"},
		{plan.Account{What: plan.Resumed}, "a node will record it as skipped"},
		{plan.Account{What: plan.Outside}, "left out by start_at or end_at; no tick before; no tick after"},
		{plan.Account{What: plan.Paused, Stop: record.Stop{By: "me"}}, "not started, and to be recorded as skipped when the pause ends: the job is paused by me"},
		{plan.Account{What: plan.Running, Start: &plan.Pictured{Open: plan.Open{Alive: true, Open: record.Open{Host: "a"}}, Kill: &record.Kill{By: "me", Why: "so"}}}, "and asked to end by me: so"},
	} {
		tt.a.At, tt.a.ID, tt.a.Due, tt.a.Until = at.Unix(), record.ID{Tick: at.Unix()}, at, at.Add(time.Minute)
		text := (&telling{pictured: k, Account: &tt.a, now: at.Add(5 * time.Second)}).text()
		if !strings.HasPrefix(text, "x/1805007600 (2027-03-14T07:00:00Z): ") || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q, want %q", tt.a.What, text, tt.want)
		}
	}
}

// Whatever somebody wrote to etcd is safe on a terminal, and no command fails over it.
func TestCronCommandsShowHostileText(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", hourly+`,"select":{"zone":"a"}}`)
	text, _ := json.Marshal(nasty)
	for _, value := range append(valuesOf(hostileValues()), strings.ReplaceAll(`{"host":T,"kind":T,"by":T,"why":T,"status":T,"reason":T,"detail":T,"signal":T,"attempt":-1,"ttl_ms":-1,"at_ms":-1,`+
		`"until_ms":9223372036854775807,"tzdata":T,"user":T,"users":[T],"unfit":T,"version":T,"labels":{"zone":T},"output":{"tail":T,"bytes":-1},"wall_ms":9223372036854775807,"from":-5,"ticks":9}`, "T", string(text))) {
		if len(value) > 1<<16 {
			value = value[:1<<16] // what etcd takes in one transaction is not the matter here
		}
		for _, key := range []string{
			record.Opens + "x/1805007600", record.Runs + "x/1805007600", record.Kills + "x/1805007600", record.Wants + "x/1805007600.1", record.Nodes + "n", record.Cards + "n",
			record.Drains + "n", record.Drains + "m", record.Results + "x/1805004000", record.Cursors + "x", record.Pause,
		} {
			if _, err := c.client.Put(t.Context(), key, value); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{
			{"ps"}, {"nodes"}, {"history", "x"}, {"why", "x", "1805007600"}, {"why", "x", "1805004000"}, {"why", "x"}, {"log", "x", "1805004000"}, {"kill", "x"}, {"run", "x"}, {"drain", "n"},
			{"undrain", "m"},
		} {
			for _, format := range []string{"table", "json"} {
				if args[0] != "log" {
					args = append(args[:len(args):len(args)], "-o", format)
				}
				s := c.shell()
				if code := s.conch(append([]string{"cron"}, args...)...); code != 0 && code != hold.CodeNo && code != hold.CodeNotAcquired {
					t.Errorf("%q: code %d, %s", args, code, s.stderr.String())
				}
				for _, out := range []string{s.stdout.String(), s.stderr.String()} {
					if args[0] == "log" { // whose lines and tabs are the run's own
						out = strings.NewReplacer("\t", " ", "\n", " ").Replace(out) + "\n"
					}
					if err := harmless(out, false); err != nil {
						t.Errorf("%q of %.60q: %v", args, value, err)
					}
				}
			}
		}
		if _, err := c.client.Delete(t.Context(), record.State, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}
	c.put(record.JobKey("x"), nasty)
	for _, verb := range []string{"why", "run", "pause"} {
		if err := harmless(c.refuses(1, verb, "x"), false); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func valuesOf(m map[string]string) (all []string) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}
