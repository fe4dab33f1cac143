package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// at is a second of a day that begins with tick 0.
func at(s float64) time.Time { return time.Unix(0, int64(s*1e9)) }

// everyTen is due each 10 s, and may be 5 s late.
func everyTen(change ...func(*Job)) *Job {
	ticks, err := schedule.Parse(schedule.Options{}, "@every 10s")
	if err != nil {
		panic(err)
	}
	j := &Job{
		Name: "j", Rev: 1, Schedule: ticks, Overlap: Forbid, Prefer: Any,
		Deadline: func(interval time.Duration) time.Duration { return min(time.Minute, interval/2) },
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func fit(host string) *Node {
	return &Node{
		Host: host, Fit: true, Others: func() bool { return true }, Absent: func() record.Reason { return record.ReasonDeadline },
	}
}

func decided(tick int64, wants ...Want) *State {
	return &State{Cursor: record.Cursor{Tick: tick}, CursorRev: 1, Wants: wants}
}

func behind(s *State, id record.ID) *State {
	s.Opens = append(s.Opens, Open{ID: id, Rev: 9, Alive: true})
	return s
}

func tell(a Act) string {
	if a.Verb == Wait && a.At.IsZero() {
		return "wait"
	}
	verb := [...]string{"wait", "run", "skip", "range", "queue", "take", "close", "abandon"}[a.Verb]
	text := fmt.Sprintf("%s at %d", verb, a.At.Unix()) // who goes first within the second is another test's
	if a.Verb != Wait {
		text += fmt.Sprintf(" %v %s", a.ID, a.Kind)
	}
	if a.Status != "" {
		text += fmt.Sprintf(" %s %s", a.Status, a.Reason)
	}
	if a.Ticks > 0 {
		text += fmt.Sprintf(" %d from %d", a.Ticks, a.From)
	}
	return text
}

func TestWhatToDoAboutATick(t *testing.T) {
	t.Parallel()
	one := record.ID{Tick: 10}
	paused := func(until, resumed int64) func(*Job) {
		return func(j *Job) { j.Paused = record.Stop{By: "ann", Until: until, Resumed: resumed} }
	}
	overlap := func(o Overlap) func(*Job) { return func(j *Job) { j.Overlap = o } }
	catch := func(c CatchUp) func(*Job) { return func(j *Job) { j.CatchUp = c } }
	for name, c := range map[string]struct {
		job   *Job
		state *State
		now   float64
		want  string
	}{
		"before it is due":              {everyTen(), decided(10), 15, "wait at 20"},
		"when it is due":                {everyTen(), decided(10), 20, "run at 20 20 scheduled"},
		"a moment later":                {everyTen(), decided(10), 20.9, "run at 20 20 scheduled"},
		"late, and in time":             {everyTen(), decided(10), 23, "run at 20 20 late"},
		"too late":                      {everyTen(), decided(10), 25, "range at 25 20 scheduled missed start_deadline"},
		"with others that are too late": {everyTen(), decided(10), 57, "range at 55 50 scheduled missed start_deadline 4 from 20"},
		"one behind is too late":        {everyTen(), decided(10), 51, "range at 45 40 scheduled missed start_deadline 3 from 20"},
		"decided":                       {everyTen(), decided(20), 20, "wait at 30"},
		"before the last edit":          {everyTen(func(j *Job) { j.Since = at(20) }), decided(0), 20, "wait at 30"},
		"before it may begin":           {everyTen(func(j *Job) { j.From = at(30) }), decided(10), 20, "wait at 30"},
		"after it has ended":            {everyTen(func(j *Job) { j.To = at(19) }), decided(10), 20, "wait"},
		"missed, with an end":           {everyTen(func(j *Job) { j.To = at(30) }), decided(10), 60, "range at 35 30 scheduled missed start_deadline 2 from 20"},
		"with jitter":                   {everyTen(func(j *Job) { j.Shift = 3 * time.Second }), decided(10), 20, "wait at 23"},
		"paused":                        {everyTen(paused(0, 0)), decided(10), 20, "wait"},
		"paused for a while":            {everyTen(paused(35_000, 0)), decided(10), 20, "wait at 35"},
		"after a pause":                 {everyTen(paused(35_000, 0)), decided(10), 36, "range at 30 30 scheduled skipped paused 2 from 20"},
		"after a pause of nothing":      {everyTen(paused(0, 19_000)), decided(10), 19, "wait at 20"},
		"while one runs: forbid":        {everyTen(), behind(decided(10), one), 20, "skip at 20 20 scheduled skipped overlap"},
		"while one runs: allow":         {everyTen(overlap(Allow)), behind(decided(10), one), 20, "run at 20 20 scheduled"},
		"while one runs: queue":         {everyTen(overlap(QueueOne)), behind(decided(10), one), 20, "queue at 20 20 queued"},
		"while one runs and one waits": {
			everyTen(overlap(QueueOne)), behind(decided(20, Want{ID: record.ID{Tick: 20, N: 1}, Want: record.Want{Kind: record.Queued}}), one), 30,
			"skip at 30 30 scheduled skipped overlap",
		},
		"while one runs: replace":     {everyTen(overlap(Replaces)), behind(decided(10), one), 20, "take at 20 20 replace"},
		"catching up with the last":   {everyTen(catch(CatchUp{Last: true, Window: time.Minute})), decided(40), 57, "run at 50 50 catchup"},
		"and with what it leaves out": {everyTen(catch(CatchUp{Last: true, Window: time.Minute})), decided(10), 57, "range at 45 40 scheduled missed start_deadline 3 from 20"},
		"of which nothing is new":     {everyTen(catch(CatchUp{Last: true, Window: time.Second})), decided(10), 57, "range at 55 50 scheduled missed start_deadline 4 from 20"},
		"catching up with all":        {everyTen(catch(CatchUp{All: true, Window: time.Minute})), decided(10), 57, "run at 20 20 catchup"},
		"with the newest two":         {everyTen(catch(CatchUp{All: true, Window: time.Minute, Max: 2})), decided(10), 57, "range at 35 30 scheduled missed start_deadline 2 from 20"},
		"with what the window leaves": {everyTen(catch(CatchUp{All: true, Window: 15 * time.Second})), decided(10), 57, "range at 45 40 scheduled missed start_deadline 3 from 20"},
		"one after the other":         {everyTen(catch(CatchUp{All: true, Window: time.Minute})), behind(decided(20), one), 57, "wait at 90"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tell(Next(c.job, c.state, fit("a"), at(c.now))); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestWhoMayNotOnlySaysThatItIsTooLate(t *testing.T) {
	t.Parallel()
	n := fit("a")
	n.Fit, n.Slack = false, 3*time.Second
	for now, want := range map[float64]string{
		20: "wait at 23", 26: "wait at 28", 28: "range at 28 20 scheduled missed start_deadline",
	} {
		if got := tell(Next(everyTen(), decided(10), n, at(now))); got != want {
			t.Errorf("at %v: %s, want %s", now, got, want)
		}
	}
	n.Absent = func() record.Reason { return record.ReasonNoNode }
	if got := tell(Next(everyTen(), decided(10), n, at(29))); got != "range at 28 20 scheduled skipped no_node" {
		t.Error(got)
	}
	n.ReadOnly = true
	if got := tell(Next(everyTen(), decided(10), n, at(29))); got != "wait" {
		t.Error(got)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	want := func(w record.Want) *State { return decided(1000, Want{Want: w, ID: record.ID{Tick: 50, N: 1}, Rev: 3}) }
	for name, c := range map[string]struct {
		change func(*Job, *State, *Node)
		want   record.Want
		now    float64
		tells  string
	}{
		"at once":              {nil, record.Want{Kind: record.Manual}, 60, "run at 50 50.1 manual"},
		"not yet":              {nil, record.Want{Kind: record.Retry, After: 70_000}, 60, "run at 70 50.1 retry"},
		"not here":             {nil, record.Want{Kind: record.Retry, After: 70_000, Not: "a"}, 60, "run at 80 50.1 retry"},
		"here if nobody else":  {func(_ *Job, _ *State, n *Node) { n.Others = func() bool { return false } }, record.Want{Kind: record.Retry, After: 70_000, Not: "a"}, 60, "run at 70 50.1 retry"},
		"too late":             {nil, record.Want{Kind: record.Manual, Until: 60_000}, 60, "abandon at 60 50.1 manual missed start_deadline"},
		"while one runs":       {func(_ *Job, s *State, _ *Node) { behind(s, record.ID{Tick: 40}) }, record.Want{Kind: record.Queued}, 60, "wait at 1010"},
		"until it is too late": {func(_ *Job, s *State, _ *Node) { behind(s, record.ID{Tick: 40}) }, record.Want{Kind: record.Queued, Until: 70_000}, 60, "wait at 70"},
		"by who may not":       {func(_ *Job, _ *State, n *Node) { n.Fit = false }, record.Want{Kind: record.Manual}, 60, "wait at 1010"},
		"paused":               {func(_ *Job, _ *State, n *Node) { n.Pause = record.Stop{By: "ann"} }, record.Want{Kind: record.Manual}, 60, "wait"},
		"paused for a while":   {func(_ *Job, _ *State, n *Node) { n.Pause = record.Stop{By: "ann", Until: 70_000} }, record.Want{Kind: record.Manual}, 60, "wait at 70"},
		"of another host":      {func(_ *Job, s *State, _ *Node) { s.Wants[0].ID.Host = "b" }, record.Want{Kind: record.Manual}, 60, "wait at 1010"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, s, n := everyTen(), want(c.want), fit("a")
			if c.change != nil {
				c.change(j, s, n)
			}
			if got := tell(Next(j, s, n, at(c.now))); got != c.tells {
				t.Errorf("%s\nwant %s", got, c.tells)
			}
		})
	}
}

// Its marker may have gone early, with its child alive until its own deadline.
func TestALostStartIsSettledForItsTTL(t *testing.T) {
	t.Parallel()
	s := decided(1000)
	s.Opens = []Open{{Open: record.Open{TTL: 10_000, Kind: record.Scheduled, Attempt: 1}, ID: record.ID{Tick: 50}, Rev: 9, Gone: 100 * time.Second}}
	n := fit("a")
	n.Mono = 104 * time.Second
	if got := tell(Next(everyTen(), s, n, at(60))); got != "close at 66 50 scheduled lost node_gone" {
		t.Error(got)
	}
	// A wall clock that is set changes nothing about that.
	if got := tell(Next(everyTen(), s, n, at(990))); got != "close at 996 50 scheduled lost node_gone" {
		t.Error(got)
	}
	s.Opens[0].Alive = true
	if got := tell(Next(everyTen(), s, n, at(60))); got != "wait at 1010" {
		t.Error(got)
	}
}

func TestNodesTakeTurns(t *testing.T) {
	t.Parallel()
	first := map[string]int{}
	hosts := []string{"a", "b", "c"}
	for tick := int64(10); tick <= 10_000; tick += 10 {
		var best string
		var when time.Time
		for _, h := range hosts {
			a := Next(everyTen(func(j *Job) { j.Prefer = Spread }), decided(tick-10), fit(h), at(float64(tick)))
			if d := a.At.Sub(at(float64(tick))); d < 0 || d >= spreadOver {
				t.Fatalf("%s waits %v", h, d)
			}
			if best == "" || a.At.Before(when) {
				best, when = h, a.At
			}
		}
		first[best]++
	}
	for _, h := range hosts {
		if first[h] < 250 {
			t.Errorf("first by host: %v", first)
		}
	}
	// Sticky: who had the last one has the next one.
	sticky := everyTen(func(j *Job) { j.Prefer = Sticky })
	s := decided(10)
	s.Cursor.Host = "b"
	mine, other := Next(sticky, s, fit("b"), at(20)), Next(sticky, s, fit("a"), at(20))
	if !mine.At.Equal(at(20)) || other.At.Sub(at(20)) < stickFor {
		t.Errorf("last one at %v, another one at %v", mine.At, other.At)
	}
}

func TestEachHostForItself(t *testing.T) {
	t.Parallel()
	j := everyTen(func(j *Job) { j.OnAll, j.Prefer = true, Spread })
	s := behind(decided(10), record.ID{Tick: 10, Host: "b"})
	if got := tell(Next(j, s, fit("a"), at(20))); got != "run at 20 20@a scheduled" {
		t.Error(got)
	}
	if got := tell(Next(j, s, fit("b"), at(20))); got != "skip at 20 20@b scheduled skipped overlap" {
		t.Error(got)
	}
	// What was before a host came is none of its business.
	n := fit("c")
	n.Since = at(95)
	if got := tell(Next(j, &State{}, n, at(96))); got != "wait at 100" {
		t.Error(got)
	}
}

// Whatever is known, a decision is about the first tick that is not decided.
func TestNoTickIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, c := range []CatchUp{{}, {Last: true, Window: time.Hour}, {All: true, Window: time.Hour, Max: 7}, {All: true, Window: 95 * time.Second}} {
		s, told := decided(0), map[int64]int{}
		for now := 3600.0; ; now++ {
			a := Next(everyTen(func(j *Job) { j.CatchUp = c }), s, fit("a"), at(now))
			if a.Verb == Wait {
				break
			}
			from := a.ID.Tick
			if a.Ticks > 0 {
				from = a.From
			}
			for tick := from; tick <= a.ID.Tick; tick += 10 {
				told[tick]++
			}
			s.Cursor.Tick = a.ID.Tick
		}
		for tick := int64(10); tick <= 3600; tick += 10 {
			if told[tick] != 1 {
				t.Errorf("%+v: tick %d was decided %d times", c, tick, told[tick])
			}
		}
	}
}
