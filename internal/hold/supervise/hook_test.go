package supervise

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// hookSays is an event about a hook of the first run.
func hookSays(which string, kind guard.Kind) event {
	return about("1f-1/"+which, guard.Event{Kind: kind})
}

func hookExits(which string, code int) event {
	return about("1f-1/"+which, guard.Event{Kind: guard.KindExited, Code: code})
}

// Each rule was broken on purpose and turned a story here, or TestInvariantsInManyWorlds, red: the child starts
// although on-acquire failed; on-acquire has no limit; on-lose after the release, or twice, or not after a failed
// on-acquire; on-lose dies with the hold's deadline; a failed on-lose releases under FenceOnLose; the guard has a testament then.
func TestHooks(t *testing.T) {
	t.Parallel()
	ready := happens{5, says(guard.KindReady), ""}
	both := testConfig
	both.OnAcquire, both.OnLose, both.HookTimeout = "equip", "clear", 2*time.Second
	fenced := both
	fenced.OnAcquire, fenced.FenceOnLose = "", true

	equips := []happens{
		ready,
		{100, won(), "bequeath 1f-1, start 1f-1/on-acquire until 4500/9500"},
		{110, hookSays("on-acquire", guard.KindStarted), ""},
	}
	equipped := append(slices.Clone(equips),
		happens{200, hookExits("on-acquire", 0), ""},
		happens{201, hookSays("on-acquire", guard.KindGone), "start 1f-1 until 4500/9500"},
		happens{210, says(guard.KindStarted), ""},
	)
	runs := []happens{ready, {100, won(), "start 1f-1 until 4500/9500"}, {110, says(guard.KindStarted), ""}}
	after := func(first []happens, more ...happens) []happens { return append(slices.Clone(first), more...) }
	const clears = "take terminal, start 1f-1/on-lose until "

	for _, tt := range []struct {
		name  string
		cfg   Config
		story []happens
	}{
		{"one after the other, and renewals go to whoever runs", both, after(equips,
			happens{150, renewedTo(5500, 10500), "extend 1f-1/on-acquire until 5500/10500"},
			happens{200, hookExits("on-acquire", 0), ""},
			happens{201, hookSays("on-acquire", guard.KindGone), "start 1f-1 until 5500/10500"},
			happens{210, says(guard.KindStarted), ""},
			happens{300, renewedTo(6500, 11500), "extend 1f-1 until 6500/11500"},
			happens{1000, exitedWith(3), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1010, hookSays("on-lose", guard.KindStarted), ""},
			happens{1100, renewedTo(7500, 12500), ""}, // it has a limit of its own
			happens{1200, hookExits("on-lose", 0), ""},
			happens{1201, hookSays("on-lose", guard.KindGone), "release released"},
			happens{1210, released(nil), "forget 1f-1, finish child-exit 3 released"},
		)},
		{"evicted: on-lose before the release", both, after(equipped,
			happens{1000, evicted(), "stop 1f-1 by 6000"},
			happens{1100, exitedWith(0), ""},
			happens{1101, says(guard.KindGone), clears + "3101/8101"},
			happens{1102, evicted(), ""},
			happens{1200, hookExits("on-lose", 0), ""},
			happens{1201, hookSays("on-lose", guard.KindGone), "release evicted"},
			happens{1210, released(nil), "forget 1f-1, finish evicted 70 released"},
		)},
		{"evicted during on-acquire: no child", both, after(equips,
			happens{150, evicted(), "stop 1f-1/on-acquire by 5150"},
			happens{200, hookExits("on-acquire", 0), ""},
			happens{201, hookSays("on-acquire", guard.KindGone), clears + "2201/7201"},
			happens{300, hookExits("on-lose", 0), ""},
			happens{301, hookSays("on-lose", guard.KindGone), "release evicted"},
			happens{310, released(nil), "forget 1f-1, finish evicted 70 released"},
		)},
		{"on-acquire fails: no child, and on-lose undoes what it did", both, after(equips,
			happens{200, hookExits("on-acquire", 9), ""},
			happens{201, hookSays("on-acquire", guard.KindGone), clears + "2201/7201"},
			happens{300, hookExits("on-lose", 0), ""},
			happens{301, hookSays("on-lose", guard.KindGone), "release released"},
			happens{310, released(nil), "forget 1f-1, finish not-acquired 75 released"},
		)},
		{"on-acquire ends by a signal, and so does on-lose", both, after(equips,
			happens{200, about("1f-1/on-acquire", guard.Event{Kind: guard.KindExited, Signal: 11}), ""},
			happens{201, hookSays("on-acquire", guard.KindGone), clears + "2201/7201"},
			happens{300, about("1f-1/on-lose", guard.Event{Kind: guard.KindExited, Signal: 11}), ""},
			happens{301, hookSays("on-lose", guard.KindGone), "release released"},
		)},
		{"on-acquire takes too long", both, after(equips,
			happens{2099, tick(), ""},
			happens{2100, tick(), "stop 1f-1/on-acquire by 7100"},
			happens{2101, hookSays("on-acquire", guard.KindTermSent), ""},
			happens{2102, hookExits("on-acquire", 0), ""}, // too late
			happens{2103, hookSays("on-acquire", guard.KindGone), clears + "4103/9103"},
		)},
		{"on-acquire cannot be started", both, after(equips[:2],
			happens{110, about("1f-1/on-acquire", guard.Event{Kind: guard.KindRefused, Code: int(syscall.ENOENT)}), "release released"},
			happens{120, released(nil), "forget 1f-1, finish not-acquired 75 released"},
		)},
		{"on-acquire comes too late and is tried anew", both, after(equips[:2],
			happens{4400, about("1f-1/on-acquire", guard.Event{Kind: guard.KindRefused}), ""},
			happens{4450, renewedTo(8800, 13800), "bequeath 1f-2, forget 1f-1, start 1f-2/on-acquire until 8800/13800"},
		)},
		{"lost during on-acquire: on-lose all the same, with nothing held", both, after(equips,
			happens{1000, lostBy(hold.ErrLost), "stop 1f-1/on-acquire by 6000"},
			happens{1100, hookExits("on-acquire", 0), ""},
			happens{1101, hookSays("on-acquire", guard.KindGone), clears + "3101/8101"},
			happens{1200, hookExits("on-lose", 0), ""},
			happens{1201, hookSays("on-lose", guard.KindGone), "release lost"},
			happens{1210, released(nil), "forget 1f-1, finish lost 70 released"},
		)},
		{"a signal during on-acquire", both, after(equips,
			happens{1000, signalled(syscall.SIGTERM), "stop 1f-1/on-acquire by 6000"},
			happens{1001, signalled(syscall.SIGUSR1), ""}, // there is no child
			happens{1100, about("1f-1/on-acquire", guard.Event{Kind: guard.KindExited, Signal: 15}), ""},
			happens{1101, hookSays("on-acquire", guard.KindGone), clears + "3101/8101"},
			happens{1200, hookExits("on-lose", 0), ""},
			happens{1201, hookSays("on-lose", guard.KindGone), "release released"},
			happens{1210, released(nil), "forget 1f-1, finish signalled 143 released"},
		)},
		{"the guard dies during on-acquire", both, after(equips,
			happens{1000, says(guard.KindLost), "sweep"},
			happens{1050, swept(nil), "release lost"}, // on-lose has nobody to run it
			happens{1060, released(nil), "finish lost 70 released"},
		)},
		{"lost between on-acquire and the child: nothing is started but on-lose", both, after(equips,
			happens{4499, hookExits("on-acquire", 0), ""},
			happens{4500, hookSays("on-acquire", guard.KindGone), "stop 1f-1/on-acquire by 9499, " + clears + "6500/11500"},
		)},
		{"lost while on-lose runs: it goes on, past the deadline", both, after(equipped,
			happens{4000, exitedWith(0), ""},
			happens{4001, says(guard.KindGone), clears + "6001/11001"},
			happens{4600, tick(), ""},
			happens{9900, tick(), ""},
			happens{9901, hookExits("on-lose", 0), ""},
			happens{9902, hookSays("on-lose", guard.KindGone), "release lost"},
			happens{9910, released(nil), "forget 1f-1, finish child-exit 0 released"},
		)},
		{"a child that cannot be executed: what on-acquire did is undone", both, after(equipped[:5],
			happens{210, refusedBy(syscall.ENOENT), clears + "2210/7210"},
			happens{300, hookExits("on-lose", 0), ""},
			happens{301, hookSays("on-lose", guard.KindGone), "release released"},
			happens{310, released(nil), "forget 1f-1, finish not-started 127 released"},
		)},
		{"on-lose fails: a line, and the release", both, after(equipped,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1100, hookExits("on-lose", 1), ""},
			happens{1101, hookSays("on-lose", guard.KindGone), "release released"},
			happens{1110, released(nil), "forget 1f-1, finish child-exit 0 released"},
		)},
		{"fenced: the guard has no testament, a good on-lose releases", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1100, hookExits("on-lose", 0), ""},
			happens{1101, hookSays("on-lose", guard.KindGone), "release released"},
			happens{1110, released(nil), "forget 1f-1, finish child-exit 0 released"},
		)},
		{"fenced: who queues can be taken away, who holds cannot", fenced, []happens{
			ready,
			{50, placed(), "bequeath queued-1"},
			{100, won(), "forget queued-1, start 1f-1 until 4500/9500"},
		}},
		{"fenced: on-lose fails and nothing is released", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1100, hookExits("on-lose", 1), ""},
			happens{1101, hookSays("on-lose", guard.KindGone), "finish hook-failed 71"},
		)},
		{"fenced: the same after a loss", fenced, after(runs,
			happens{1000, lostBy(hold.ErrLost), "stop 1f-1 by 6000"},
			happens{1001, exitedWith(0), ""},
			happens{1002, says(guard.KindGone), clears + "3002/8002"},
			happens{1100, hookExits("on-lose", 1), ""},
			happens{1101, hookSays("on-lose", guard.KindGone), "finish hook-failed 71"},
		)},
		{"fenced: on-lose takes too long", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{3001, hookSays("on-lose", guard.KindTermSent), ""}, // by the guard's own timer
			happens{3002, hookExits("on-lose", 0), ""},
			happens{3003, hookSays("on-lose", guard.KindGone), "finish hook-failed 71"},
		)},
		{"fenced: on-lose cannot be started", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1002, about("1f-1/on-lose", guard.Event{Kind: guard.KindRefused, Code: int(syscall.ENOENT)}), "finish hook-failed 71"},
		)},
		{"fenced: no guard to run on-lose", fenced, after(runs,
			happens{1000, says(guard.KindLost), "sweep"},
			happens{1050, swept(nil), "finish hook-failed 71"},
		)},
		{"fenced: the guard dies while on-lose runs", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1100, says(guard.KindLost), "sweep"},
			happens{1150, swept(nil), "finish hook-failed 71"},
		)},
		{"fenced: the guard is frozen while on-lose runs", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{9901, tick(), ""}, // two seconds after SIGKILL was due
			happens{10001, tick(), "kill guard, sweep"},
			happens{10050, swept(nil), "finish hook-failed 71"},
		)},
		{"fenced: nothing ran, nothing is owed", fenced, []happens{
			{100, won(), ""},
			{120, signalled(syscall.SIGHUP), "release released"},
			{160, released(nil), "forget 1f-1, finish signalled 129 released"},
		}},
		{"a signal lets on-lose finish, a second one does not", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1100, signalled(syscall.SIGTERM), ""},
			happens{1200, signalled(syscall.SIGINT), "kill 1f-1/on-lose"},
			happens{1201, about("1f-1/on-lose", guard.Event{Kind: guard.KindExited, Signal: 9}), ""},
			happens{1202, hookSays("on-lose", guard.KindGone), "finish hook-failed 71"},
		)},
		{"on-lose that outlives SIGKILL", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{8001, hookSays("on-lose", guard.KindKillSent), ""},
			happens{9001, hookSays("on-lose", guard.KindStuck), ""},
			happens{14001, tick(), "finish lost 70"},
		)},
		{"the end of on-lose is not known", fenced, after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), clears + "3001/8001"},
			happens{1002, hookSays("on-lose", guard.KindGone), "finish hook-failed 71"},
		)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			play(t, tt.cfg, tt.story)
		})
	}
}

// A hook knows which one it is, and whether the hold is kept; it has neither the child's input nor its output.
func TestWhatAHookGets(t *testing.T) {
	t.Parallel()
	cfg := testConfig
	cfg.OnAcquire, cfg.OnLose, cfg.HookTimeout = "equip", "clear", time.Second
	cfg.Env = append(slices.Clone(cfg.Env), "CONCH_HOOK=on-lose", "CONCH_HELD=no") // of a wrapper around this one
	m := newMachine(cfg, 0)
	starts := map[string]*guard.Spec{}
	for _, ev := range []event{
		says(guard.KindReady), won(), hookExits("on-acquire", 0), hookSays("on-acquire", guard.KindGone),
		exitedWith(0), lostBy(hold.ErrLost), says(guard.KindGone),
	} {
		for _, a := range m.step(ev) {
			if a.kind == actSend && a.request.Op == guard.OpStart {
				starts[a.request.Run] = a.request.Spec
			}
		}
	}
	for run, want := range map[string]string{
		"1f-1/on-acquire": "HOME=/ CONCH_NAME=office CONCH_REV=12 CONCH_LEASE=1f CONCH_HOOK=on-acquire CONCH_HELD=yes",
		"1f-1":            "HOME=/ CONCH_NAME=office CONCH_REV=12 CONCH_LEASE=1f",
		"1f-1/on-lose":    "HOME=/ CONCH_NAME=office CONCH_REV=12 CONCH_LEASE=1f CONCH_HOOK=on-lose CONCH_HELD=no",
	} {
		spec := starts[run]
		if spec == nil {
			t.Fatalf("%s was not started: %v", run, starts)
		}
		if got := strings.Join(spec.Env, " "); got != want {
			t.Errorf("%s: environment %q, want %q", run, got, want)
		}
		if run != "1f-1" && (spec.Path != "/bin/sh" || spec.Foreground || !strings.HasPrefix(spec.Argv[2], "exec </dev/null >&2\n")) {
			t.Errorf("%s: %+v", run, spec)
		}
	}
}

// The reason of a line is why that signal was sent, not why an earlier one was.
func TestSignalsToOnLoseHaveTheReasonsOfAHook(t *testing.T) {
	t.Parallel()
	cfg := testConfig
	cfg.OnLose, cfg.FenceOnLose, cfg.HookTimeout = "clear", true, 2*time.Second
	runs := []event{says(guard.KindReady), won(), says(guard.KindStarted), exitedWith(0), says(guard.KindGone)}
	sent := func(kind guard.Kind, reason string) event {
		return about("1f-1/on-lose", guard.Event{Kind: kind, Reason: reason})
	}
	for name, tt := range map[string]struct {
		story []event
		want  []string
	}{
		"it takes too long": {
			[]event{sent(guard.KindTermSent, guard.ReasonDeadline), sent(guard.KindKillSent, guard.ReasonDeadline)},
			[]string{"term-sent did not end within 2s", "kill-sent kill-after"},
		},
		"a second signal": {
			[]event{sent(guard.KindKillSent, "second signal SIGINT")},
			[]string{"kill-sent second signal SIGINT"},
		},
		"it comes too late": {
			[]event{about("1f-1/on-lose", guard.Event{Kind: guard.KindRefused})},
			[]string{"hold is left to its ttl on-lose did not succeed: it did not start within 2s"},
		},
	} {
		m := newMachine(cfg, 0)
		for _, ev := range runs {
			m.step(ev)
		}
		var got []string
		for _, ev := range tt.story {
			for _, a := range m.step(ev) {
				if a.kind != actLog {
					continue
				}
				for _, attr := range a.line.attrs {
					if attr.Key == "reason" {
						got = append(got, a.line.text+" "+attr.Value.String())
					}
				}
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
