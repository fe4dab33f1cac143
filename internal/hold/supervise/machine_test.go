package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// Everything in these tables counts in milliseconds from the start of the run. The hold has a TTL of 10 s
// and is renewed from 1 s on: unless a test says otherwise, it is lost at 4.5 s and the child dead by 9.5 s.
var (
	testConfig = Config{
		Kind: hold.KindElect, Name: "office", Path: "/bin/work", Argv: []string{"work"}, Env: []string{"HOME=/"},
		KillAfter: 5 * time.Second, Margin: 500 * time.Millisecond,
	}
	testInfo = hold.Info{Kind: hold.KindElect, Name: "office", Rev: 12, Lease: 0x1f, Slot: -1, TTL: 10 * time.Second}
)

const ms = time.Millisecond

// happens is one event of a table, and what the machine is to do about it.
type happens struct {
	at   time.Duration // milliseconds
	what event
	does string // as told by tell, lines left out
}

func until(term, kill time.Duration) hold.Deadlines {
	return hold.Deadlines{Term: term * ms, Kill: kill * ms}
}

func tick() event { return event{kind: evTick} }

func won() event {
	return event{kind: evAcquired, info: testInfo, testament: []byte("{}"), deadlines: until(4500, 9500)}
}

func placed() event { return event{kind: evPlaced, testament: []byte("{}")} }

func notWon(err error) event { return event{kind: evNotAcquired, err: err} }

func renewedTo(term, kill time.Duration) event {
	return event{kind: evRenewed, deadlines: until(term, kill)}
}

func lostBy(err error) event           { return event{kind: evLost, err: err} }
func evicted() event                   { return event{kind: evEvicted, err: errAsked} }
func signalled(s syscall.Signal) event { return event{kind: evSignal, signal: s} }
func swept(err error) event            { return event{kind: evSwept, err: err} }
func released(err error) event         { return event{kind: evReleased, err: err} }

func says(kind guard.Kind) event { return about("1f-1", guard.Event{Kind: kind}) }

func about(run string, ev guard.Event) event {
	ev.Run = run
	return event{kind: evGuard, guard: ev}
}

func exitedWith(code int) event {
	return about("1f-1", guard.Event{Kind: guard.KindExited, Code: code})
}

func refusedBy(errno syscall.Errno) event {
	return about("1f-1", guard.Event{Kind: guard.KindRefused, Code: int(errno)})
}

// tell puts actions into words.
func tell(actions []action) string {
	var said []string
	for _, a := range actions {
		if a.kind != actLog {
			said = append(said, tellOne(a))
		}
	}
	return strings.Join(said, ", ")
}

func tellOne(a action) string {
	switch a.kind {
	case actSend:
		r := a.request
		text := string(r.Op) + " " + r.Run
		switch r.Op {
		case guard.OpStart, guard.OpExtend:
			text += fmt.Sprintf(" until %d/%d", r.Deadlines.Term/ms, r.Deadlines.Kill/ms)
		case guard.OpStop:
			text += fmt.Sprintf(" by %d", r.KillAt/ms)
		case guard.OpSignal:
			text += " " + signalName(r.Signal)
		}
		return text
	case actCancelAcquire:
		return "cancel acquire"
	case actRelease:
		return "release " + string(a.end)
	case actStopRelease:
		return "stop release"
	case actKillGuard:
		return "kill guard"
	case actSweep:
		return "sweep"
	case actTakeTerminal:
		return "take terminal"
	case actFinish:
		text := fmt.Sprintf("finish %s %d", a.outcome.Status.Outcome, a.outcome.Status.Code)
		if a.outcome.Released {
			text += " released"
		}
		return text
	}
	return "?"
}

var errAsked = fmt.Errorf("%w: asked by the test", hold.ErrEvicted)

var errEtcd = errors.New("etcd is away")

// play tells a machine a story, and checks what it does about each event.
func play(t *testing.T, cfg Config, story []happens) {
	t.Helper()
	m := newMachine(cfg, 0)
	for _, h := range story {
		h.what.at = h.at * ms
		if got := tell(m.step(h.what)); got != h.does {
			t.Fatalf("at %d ms, event %d %+v:\n does %q\n want %q", h.at, h.what.kind, h.what.guard, got, h.does)
		}
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	// The beginning of most stories.
	ready := happens{5, says(guard.KindReady), ""}
	start := happens{100, won(), "bequeath 1f-1, start 1f-1 until 4500/9500"}
	child := happens{110, says(guard.KindStarted), ""}
	runs := []happens{ready, start, child}
	after := func(first []happens, more ...happens) []happens { return append(slices.Clone(first), more...) }

	for _, tt := range []struct {
		name  string
		story []happens
	}{
		{"the child exits and the hold is released", after(runs,
			happens{200, exitedWith(3), ""},
			happens{201, says(guard.KindGone), "release released"},
			happens{205, released(nil), "forget 1f-1, finish child-exit 3 released"},
		)},
		{"a signal ended the child", after(runs,
			happens{200, about("1f-1", guard.Event{Kind: guard.KindExited, Signal: 11}), ""},
			happens{201, says(guard.KindGone), "release released"},
			happens{205, released(nil), "forget 1f-1, finish child-signal 139 released"},
		)},
		{"renewals are passed on, each once", after(runs,
			happens{1100, renewedTo(5500, 10500), "extend 1f-1 until 5500/10500"},
			happens{1101, renewedTo(5500, 10500), ""},
			happens{2100, renewedTo(6500, 11500), "extend 1f-1 until 6500/11500"},
		)},
		{"deadlines never sink", after(runs,
			happens{1100, renewedTo(5500, 10500), "extend 1f-1 until 5500/10500"},
			happens{1200, renewedTo(4600, 9600), ""},
			happens{4700, tick(), ""}, // not lost: 5500 stands
		)},

		// Before the child.
		{"a guard that comes up late holds up the child only", []happens{
			{100, won(), "bequeath 1f-1"},
			{900, says(guard.KindReady), "start 1f-1 until 4500/9500"},
		}},
		{"a guard that does not come up: nothing was acquired", []happens{
			{9999, tick(), ""},
			{10000, tick(), "kill guard, cancel acquire"},
			{10010, notWon(errEtcd), "finish unreachable 69"},
		}},
		{"a guard that does not come up, the hold won all the same", []happens{
			{10000, tick(), "kill guard, cancel acquire"},
			{10010, event{kind: evAcquired, info: testInfo, deadlines: until(14000, 19000)}, "release released"},
			{10020, released(nil), "finish unreachable 69 released"},
		}},
		{"a guard that does not come up after the hold was won", []happens{
			{9000, event{kind: evAcquired, info: testInfo, testament: []byte("{}"), deadlines: until(13000, 18000)}, "bequeath 1f-1"},
			{10000, tick(), "kill guard, release released"},
			{10010, released(nil), "finish unreachable 69 released"},
		}},
		{"a guard that dies while waiting", []happens{
			ready,
			{50, says(guard.KindLost), "cancel acquire"},
			{60, notWon(errEtcd), "finish unreachable 69"},
		}},
		{"a guard that dies between the win and the start", []happens{
			{100, won(), "bequeath 1f-1"},
			{200, says(guard.KindLost), "release released"},
			{210, released(nil), "finish unreachable 69 released"},
		}},
		{"a guard that takes no requests", []happens{
			{100, won(), "bequeath 1f-1"},
			{101, event{kind: evGuardBroken, err: errEtcd}, "kill guard, release released"},
			{110, released(nil), "finish unreachable 69 released"},
		}},
		{"not acquired", []happens{ready, {100, notWon(hold.ErrNotAcquired), "finish not-acquired 75"}}},
		{"unreachable", []happens{ready, {100, notWon(hold.ErrUnreachable), "finish unreachable 69"}}},
		{"no permission", []happens{ready, {100, notWon(hold.ErrPermission), "finish unreachable 77"}}},
		{"an acquirer that says lost", []happens{ready, {100, notWon(hold.ErrLost), "finish lost 70"}}},
		{"a signal while waiting", []happens{
			ready,
			{100, signalled(syscall.SIGTERM), "cancel acquire"},
			{150, notWon(hold.ErrNotAcquired), "finish signalled 143"},
		}},
		{"a signal while waiting, and the hold won in that moment", []happens{
			ready,
			{100, signalled(syscall.SIGINT), "cancel acquire"},
			{150, won(), "bequeath 1f-1, release released"},
			{160, released(nil), "forget 1f-1, finish signalled 130 released"},
		}},
		{"a signal between the win and the start", []happens{
			{100, won(), "bequeath 1f-1"},
			{120, signalled(syscall.SIGHUP), "release released"},
			{130, says(guard.KindReady), ""},
			{160, released(nil), "forget 1f-1, finish signalled 129 released"},
		}},
		{"who queues can be taken away by the guard, and the hold's testament takes that place before the start", []happens{
			ready,
			{50, placed(), "bequeath queued-1"},
			{100, won(), "bequeath 1f-1, forget queued-1, start 1f-1 until 4500/9500"},
		}},
		{"a place that was lost and taken again", []happens{
			ready,
			{50, placed(), "bequeath queued-1"},
			{60, placed(), "bequeath queued-2, forget queued-1"},
			{100, notWon(hold.ErrNotAcquired), "finish not-acquired 75"},
		}},
		{"a place that is told of after the win", after(runs, happens{120, placed(), ""})},
		{"two signals while acquiring does not end", []happens{
			ready,
			{100, signalled(syscall.SIGINT), "cancel acquire"},
			{200, signalled(syscall.SIGINT), ""},
			{300, signalled(syscall.SIGINT), ""},
			{1199, tick(), ""},
			{1200, tick(), "finish signalled 130"},
		}},
		{"lost before the start", []happens{
			{100, won(), "bequeath 1f-1"},
			{200, lostBy(hold.ErrLost), "release lost"},
			{210, says(guard.KindReady), ""},
			{300, released(nil), "forget 1f-1, finish lost 70 released"},
		}},
		{"this process was frozen from the win to past the deadline", []happens{
			ready,
			{4500, won(), "bequeath 1f-1, release lost"},
			{4510, released(nil), "forget 1f-1, finish lost 70 released"},
		}},

		// Eviction.
		{"evicted: the child ends in full order, renewals going on, and then the hold is given up", after(runs,
			happens{1000, evicted(), "stop 1f-1 by 6000"},
			happens{1100, renewedTo(5500, 10500), "extend 1f-1 until 5500/10500"},
			happens{1200, exitedWith(0), ""},
			happens{1201, says(guard.KindGone), "release evicted"},
			happens{1210, released(nil), "forget 1f-1, finish evicted 70 released"},
		)},
		{"evicted once, however often it is asked for", after(runs,
			happens{1000, evicted(), "stop 1f-1 by 6000"},
			happens{1001, evicted(), ""},
		)},
		{"evicted, and a signal and a second one after it", after(runs,
			happens{1000, evicted(), "stop 1f-1 by 6000"},
			happens{1100, signalled(syscall.SIGTERM), "stop 1f-1 by 6000"},
			happens{1200, signalled(syscall.SIGTERM), "kill 1f-1"},
			happens{1210, exitedWith(0), ""},
			happens{1211, says(guard.KindGone), "release evicted"},
			happens{1220, released(nil), "forget 1f-1, finish evicted 70 released"},
		)},
		{"evicted, and lost before the child has ended", after(runs,
			happens{1000, evicted(), "stop 1f-1 by 6000"},
			happens{1100, lostBy(hold.ErrLost), "stop 1f-1 by 6000"},
			happens{1200, exitedWith(0), ""},
			happens{1201, says(guard.KindGone), "release lost"},
			happens{1210, released(nil), "forget 1f-1, finish lost 70 released"},
		)},
		{"a child that has ended before is not evicted", after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, evicted(), ""},
			happens{1002, says(guard.KindGone), "release released"},
			happens{1003, evicted(), ""},
			happens{1010, released(nil), "forget 1f-1, finish child-exit 0 released"},
		)},
		{"who was told to stop already is not evicted", after(runs,
			happens{1000, signalled(syscall.SIGTERM), "stop 1f-1 by 6000"},
			happens{1001, evicted(), ""},
			happens{1100, exitedWith(5), ""},
			happens{1101, says(guard.KindGone), "release released"},
			happens{1110, released(nil), "forget 1f-1, finish child-exit 5 released"},
		)},
		{"evicted between the win and the start", []happens{
			{100, won(), "bequeath 1f-1"},
			{120, evicted(), "release evicted"},
			{130, says(guard.KindReady), ""},
			{160, released(nil), "forget 1f-1, finish evicted 70 released"},
		}},
		{"evicted while the start is on its way, which comes too late", []happens{
			ready, start,
			{105, evicted(), "stop 1f-1 by 5105"},
			{110, refusedBy(0), "release evicted"},
			{160, released(nil), "forget 1f-1, finish evicted 70 released"},
		}},
		{"evicted while the start is on its way", []happens{
			ready, start,
			{105, evicted(), "stop 1f-1 by 5105"},
			{110, says(guard.KindStarted), ""},
			{120, exitedWith(0), ""},
			{121, says(guard.KindGone), "release evicted"},
			{160, released(nil), "forget 1f-1, finish evicted 70 released"},
		}},
		{"evicted, and the guard dies: that is loss", after(runs,
			happens{1000, evicted(), "stop 1f-1 by 6000"},
			happens{1010, says(guard.KindLost), "sweep"},
			happens{1100, swept(nil), "release lost"},
			happens{1110, released(nil), "finish lost 70 released"},
		)},

		// The start.
		{"the command is not there", []happens{
			ready, start,
			{110, refusedBy(syscall.ENOENT), "release released"},
			{120, released(nil), "forget 1f-1, finish not-started 127 released"},
		}},
		{"the command cannot be run", []happens{
			ready, start,
			{110, refusedBy(syscall.EACCES), "release released"},
			{120, released(nil), "forget 1f-1, finish not-started 126 released"},
		}},
		{"too late by the guard's clock: again after a renewal, as a new run", []happens{
			ready, start,
			{4400, refusedBy(0), ""},
			{4450, renewedTo(8800, 13800), "bequeath 1f-2, forget 1f-1, start 1f-2 until 8800/13800"},
			{4460, about("1f-2", guard.Event{Kind: guard.KindStarted}), ""},
			{4461, says(guard.KindGone), ""}, // the old run is of no interest
			{4470, about("1f-2", guard.Event{Kind: guard.KindExited}), ""},
			{4471, about("1f-2", guard.Event{Kind: guard.KindGone}), "release released"},
		}},
		{"too late by the guard's clock, but a renewal was under way", []happens{
			ready, start,
			{1100, renewedTo(5500, 10500), "extend 1f-1 until 5500/10500"},
			{4400, refusedBy(0), ""}, // the guard knew 5500: wait for more
			{4500, renewedTo(9000, 14000), "bequeath 1f-2, forget 1f-1, start 1f-2 until 9000/14000"},
		}},
		{"too late, and then lost", []happens{
			ready, start,
			{4400, refusedBy(0), ""},
			{4500, tick(), "release lost"},
			{4510, renewedTo(9000, 14000), ""},
			{4520, released(nil), "forget 1f-1, finish lost 70 released"},
		}},
		{"a signal while starting, and nothing started", []happens{
			ready, start,
			{105, signalled(syscall.SIGTERM), "stop 1f-1 by 5105"},
			{110, refusedBy(0), "release released"},
			{120, released(nil), "forget 1f-1, finish signalled 143 released"},
		}},
		{"lost while starting, and nothing started", []happens{
			ready, start,
			{105, lostBy(hold.ErrLost), "stop 1f-1 by 5105"},
			{110, refusedBy(0), "release lost"},
			{120, released(nil), "forget 1f-1, finish lost 70 released"},
		}},
		{"lost while starting, and the child started", []happens{
			ready, start,
			{105, lostBy(hold.ErrLost), "stop 1f-1 by 5105"},
			{110, says(guard.KindStarted), ""},
			{120, exitedWith(0), ""},
			{121, says(guard.KindGone), "release lost"},
			{130, released(nil), "forget 1f-1, finish lost 70 released"},
		}},

		// Loss.
		{"known loss: SIGKILL after kill-after", after(runs,
			happens{1000, lostBy(hold.ErrLost), "stop 1f-1 by 6000"},
			happens{1001, says(guard.KindTermSent), ""},
			happens{1500, exitedWith(0), ""},
			happens{1501, says(guard.KindGone), "release lost"},
			happens{1510, released(nil), "forget 1f-1, finish lost 70 released"},
		)},
		{"known loss late: SIGKILL at the deadline", after(runs,
			happens{4499, lostBy(hold.ErrLost), "stop 1f-1 by 9499"},
		)},
		{"loss by silence: SIGKILL at the deadline", after(runs,
			happens{4600, tick(), "stop 1f-1 by 9500"},
		)},
		{"no way back", after(runs,
			happens{4500, tick(), "stop 1f-1 by 9500"},
			happens{4501, renewedTo(9000, 14000), ""},
			happens{4502, lostBy(hold.ErrLost), ""},
			happens{9650, tick(), ""},
			happens{9749, tick(), ""},
			happens{9750, tick(), "kill guard, sweep"}, // the old deadline counts
		)},
		{"no way back for a renewal that came with the loss", after(runs,
			happens{1000, event{kind: evLost, err: hold.ErrLost, deadlines: until(5500, 10500)}, "stop 1f-1 by 6000"},
			happens{1001, renewedTo(5500, 10500), ""},
		)},
		{"evicted", after(runs,
			happens{1000, lostBy(fmt.Errorf("by an operator: %w", hold.ErrEvicted)), "stop 1f-1 by 6000"},
			happens{1500, exitedWith(0), ""},
			happens{1501, says(guard.KindGone), "release lost"},
			happens{1510, released(nil), "forget 1f-1, finish evicted 70 released"},
		)},
		{"the child exited first: its code counts", after(runs,
			happens{1000, exitedWith(5), ""},
			happens{1001, lostBy(hold.ErrLost), "stop 1f-1 by 6000"},
			happens{1501, says(guard.KindGone), "release lost"},
			happens{1510, released(nil), "forget 1f-1, finish child-exit 5 released"},
		)},
		{"lost while releasing: the child's code", after(runs,
			happens{1000, exitedWith(5), ""},
			happens{1001, says(guard.KindGone), "release released"},
			happens{1002, lostBy(hold.ErrLost), ""},
			happens{1510, released(nil), "forget 1f-1, finish child-exit 5 released"},
		)},
		{"this process was frozen, and the guard ended the child meanwhile", after(runs,
			happens{20000, tick(), "stop 1f-1 by 9500"}, // it listens before it calls the guard frozen
			happens{20001, about("1f-1", guard.Event{Kind: guard.KindTermSent, Time: 4500 * ms}), ""},
			happens{20002, about("1f-1", guard.Event{Kind: guard.KindExited, Time: 4600 * ms}), ""},
			happens{20003, about("1f-1", guard.Event{Kind: guard.KindGone, Time: 4601 * ms}), "release lost"},
			happens{20010, released(nil), "forget 1f-1, finish lost 70 released"},
		)},
		{"this process and the guard were frozen", after(runs,
			happens{20000, tick(), "stop 1f-1 by 9500"},
			happens{20099, tick(), ""},
			happens{20100, tick(), "kill guard, sweep"},
		)},
		{"the child's exit lies past a deadline that this process has not noticed yet", after(runs,
			happens{4499, about("1f-1", guard.Event{Kind: guard.KindExited, Time: 4500 * ms}), "stop 1f-1 by 9499"},
			happens{4499, says(guard.KindGone), "release lost"},
			happens{4510, released(nil), "forget 1f-1, finish lost 70 released"},
		)},
		{"the guard's own timer ran out before it heard of a renewal", after(runs,
			happens{4499, renewedTo(8900, 13900), "extend 1f-1 until 8900/13900"},
			happens{4501, says(guard.KindTermSent), "stop 1f-1 by 9501"},
			happens{4600, renewedTo(9000, 14000), ""},
			happens{4700, exitedWith(0), ""},
			happens{4701, says(guard.KindGone), "release lost"},
			happens{4710, released(nil), "forget 1f-1, finish lost 70 released"},
		)},

		// Signals.
		{"a signal: the full kill-after, and renewals go on", after(runs,
			happens{4000, signalled(syscall.SIGTERM), "stop 1f-1 by 9000"},
			happens{4100, renewedTo(8500, 13500), "extend 1f-1 until 8500/13500"},
			happens{5000, exitedWith(0), ""},
			happens{5001, says(guard.KindGone), "release released"},
			happens{5010, released(nil), "forget 1f-1, finish child-exit 0 released"},
		)},
		{"a second signal: SIGKILL now", after(runs,
			happens{1000, signalled(syscall.SIGINT), "stop 1f-1 by 6000"},
			happens{1100, signalled(syscall.SIGTERM), "kill 1f-1"},
			happens{1101, says(guard.KindKillSent), ""},
			happens{1102, about("1f-1", guard.Event{Kind: guard.KindExited, Signal: 9}), ""},
			happens{1103, says(guard.KindGone), "release released"},
			happens{1110, released(nil), "forget 1f-1, finish child-signal 137 released"},
		)},
		{"loss after a signal only shortens", after(runs,
			happens{1000, signalled(syscall.SIGTERM), "stop 1f-1 by 6000"},
			happens{2000, lostBy(hold.ErrLost), "stop 1f-1 by 6000"},
			happens{2100, exitedWith(0), ""},
			happens{2101, says(guard.KindGone), "release lost"},
			happens{2110, released(nil), "forget 1f-1, finish lost 70 released"},
		)},
		{"a signal after loss does not lengthen, a second one kills", after(runs,
			happens{1000, lostBy(hold.ErrLost), "stop 1f-1 by 6000"},
			happens{2000, signalled(syscall.SIGTERM), ""},
			happens{2100, signalled(syscall.SIGTERM), "kill 1f-1"},
		)},
		{"the child's signals are passed on, others are not ours", after(runs,
			happens{1000, signalled(syscall.SIGUSR1), "signal 1f-1 SIGUSR1"},
			happens{1001, signalled(syscall.SIGUSR2), "signal 1f-1 SIGUSR2"},
			happens{1002, signalled(syscall.SIGWINCH), "signal 1f-1 SIGWINCH"},
			happens{1003, signalled(syscall.SIGPIPE), ""},
			happens{1004, signalled(0), ""},
		)},
		{"and have nobody to go to before the start", []happens{ready, {10, signalled(syscall.SIGUSR1), ""}}},

		// What is left over.
		{"the release waits for what the child left", after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindTermSent), ""},
			happens{1100, renewedTo(5500, 10500), "extend 1f-1 until 5500/10500"},
			happens{3000, says(guard.KindKillSent), ""},
			happens{3001, says(guard.KindGone), "release released"},
			happens{3010, released(nil), "forget 1f-1, finish child-exit 0 released"},
		)},
		{"what cannot be killed is not released", after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindKillSent), ""},
			happens{2001, says(guard.KindStuck), ""},
			happens{4001, renewedTo(8000, 13000), "extend 1f-1 until 8000/13000"},
			happens{4002, says(guard.KindStuck), ""},
			happens{7000, renewedTo(11000, 16000), "extend 1f-1 until 11000/16000"},
			happens{7001, tick(), "finish lost 70"},
		)},
		{"what was stuck may come loose", after(runs,
			happens{1000, signalled(syscall.SIGTERM), "stop 1f-1 by 6000"},
			happens{1100, renewedTo(9000, 14000), "extend 1f-1 until 9000/14000"},
			happens{6000, says(guard.KindKillSent), ""},
			happens{7000, says(guard.KindStuck), ""},
			happens{8000, about("1f-1", guard.Event{Kind: guard.KindExited, Signal: 9}), ""},
			happens{8001, says(guard.KindGone), "release released"},
		)},
		{"job control", after(runs, happens{1000, says(guard.KindStopped), ""})},
		{"gone without a word on how the child ended", after(runs,
			happens{1001, says(guard.KindGone), "release released"},
			happens{1010, released(nil), "forget 1f-1, finish lost 70 released"},
		)},

		// The guard.
		{"guard killed: this process sweeps, then releases", after(runs,
			happens{1000, says(guard.KindLost), "sweep"},
			happens{1050, swept(nil), "release lost"},
			happens{1060, released(nil), "finish lost 70 released"},
		)},
		{"guard killed, and not all is gone: no release", after(runs,
			happens{1000, says(guard.KindLost), "sweep"},
			happens{6000, swept(errors.New("pid 17 is alive")), "finish lost 70"},
		)},
		{"guard killed while starting: the child may have run", []happens{
			ready, start,
			{105, signalled(syscall.SIGTERM), "stop 1f-1 by 5105"},
			{106, says(guard.KindLost), "sweep"},
			{107, swept(nil), "release lost"},
			{108, released(nil), "finish lost 70 released"},
		}},
		{"guard killed after the child exited: its code, once nothing is left", after(runs,
			happens{1000, exitedWith(4), ""},
			happens{1001, says(guard.KindLost), "sweep"},
			happens{1050, swept(nil), "release lost"},
			happens{1060, released(nil), "finish child-exit 4 released"},
		)},
		{"guard killed after the child exited, and not all is gone", after(runs,
			happens{1000, exitedWith(4), ""},
			happens{1001, says(guard.KindLost), "sweep"},
			happens{1050, swept(errEtcd), "finish lost 70"},
		)},
		{"guard killed when nothing is left any more", after(runs,
			happens{1000, exitedWith(4), ""},
			happens{1001, says(guard.KindGone), "release released"},
			happens{1002, says(guard.KindLost), ""},
			happens{1060, released(nil), "finish child-exit 4 released"},
		)},
		{"guard frozen: killed half a margin past the deadline", after(runs,
			happens{4500, tick(), "stop 1f-1 by 9500"},
			happens{9650, tick(), ""},
			happens{9750, tick(), "kill guard, sweep"},
			happens{9751, says(guard.KindLost), ""},
			happens{9760, swept(nil), "release lost"},
			happens{9770, released(nil), "finish lost 70 released"},
		)},
		{"guard frozen after SIGKILL: the same", after(runs,
			happens{4500, tick(), "stop 1f-1 by 9500"},
			happens{9500, says(guard.KindKillSent), ""},
			happens{9650, tick(), ""},
			happens{9750, tick(), "kill guard, sweep"},
		)},
		{"its last words do not shorten the sweep", after(runs,
			happens{4500, tick(), "stop 1f-1 by 9500"},
			happens{9650, tick(), ""},
			happens{9750, tick(), "kill guard, sweep"},
			happens{9751, exitedWith(0), ""},
			happens{9752, says(guard.KindGone), ""},
			happens{9760, swept(nil), "release lost"},
		)},
		{"guard frozen while the operator stops: the hold is kept, the code is not known", after(runs,
			happens{1000, signalled(syscall.SIGTERM), "stop 1f-1 by 6000"},
			happens{1100, renewedTo(20000, 25000), "extend 1f-1 until 20000/25000"},
			happens{7900, tick(), ""},
			happens{7999, tick(), ""},
			happens{8000, tick(), "kill guard, sweep"},
			happens{8010, swept(nil), "release released"},
			happens{8020, released(nil), "finish lost 70 released"},
		)},
		{"a guard that takes no requests any more is no guard", after(runs,
			happens{1000, event{kind: evGuardBroken, err: errEtcd}, "kill guard, sweep"},
			happens{1001, says(guard.KindLost), ""},
		)},

		// The release.
		{"a failed release is tried again with longer pauses", after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), "release released"},
			happens{1010, released(errEtcd), ""},
			happens{1109, tick(), ""},
			happens{1110, tick(), "release released"},
			happens{1120, released(errEtcd), ""},
			happens{1319, tick(), ""},
			happens{1320, tick(), "release released"},
			happens{1330, released(nil), "forget 1f-1, finish child-exit 0 released"},
		)},
		{"until the deadline: then the ttl decides, and the code is the child's", after(runs,
			happens{1000, exitedWith(0), ""},
			happens{1001, says(guard.KindGone), "release released"},
			happens{9499, released(errEtcd), ""},
			happens{9600, tick(), "release released"},
			happens{9610, released(errEtcd), "finish child-exit 0"},
		)},
		{"once at least, even past the deadline", after(runs,
			happens{4500, tick(), "stop 1f-1 by 9500"},
			happens{9700, says(guard.KindGone), "release lost"},
			happens{9800, released(errEtcd), "finish lost 70"},
		)},
		{"a signal ends a release that hangs", after(runs,
			happens{1000, exitedWith(7), ""},
			happens{1001, says(guard.KindGone), "release released"},
			happens{1100, signalled(syscall.SIGTERM), ""},
			happens{1200, signalled(syscall.SIGTERM), ""},
			happens{2100, tick(), "stop release"},
			happens{2101, released(errEtcd), "finish child-exit 7"},
		)},
		{"and one that pauses", after(runs,
			happens{1000, exitedWith(7), ""},
			happens{1001, says(guard.KindGone), "release released"},
			happens{1002, signalled(syscall.SIGTERM), ""},
			happens{2001, released(errEtcd), ""},
			happens{2002, tick(), "finish child-exit 7"},
		)},
		{"nothing happens after the end", after(runs,
			happens{1000, exitedWith(7), ""},
			happens{1001, says(guard.KindGone), "release released"},
			happens{1002, released(nil), "forget 1f-1, finish child-exit 7 released"},
			happens{1003, released(nil), ""},
			happens{1004, lostBy(hold.ErrLost), ""},
			happens{1005, signalled(syscall.SIGTERM), ""},
			happens{99999, tick(), ""},
		)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			play(t, testConfig, tt.story)
		})
	}
}

// TestTheMachineAsksToBeWoken checks that no moment is missed: driven by nothing but wake, a story with a
// frozen guard and an etcd that is away comes to its end.
func TestTheMachineAsksToBeWoken(t *testing.T) {
	t.Parallel()
	m := newMachine(testConfig, 0)
	m.step(says(guard.KindReady))
	m.step(won())
	if at := m.wake(); at != 0 {
		t.Errorf("a child that runs needs no timer, wake is %v", at)
	}
	m.step(event{kind: evLost, at: 1000 * ms, err: hold.ErrLost})
	var moments []time.Duration
	for m.phase != done {
		at := m.wake()
		if at == 0 {
			t.Fatalf("phase %d asks for nothing after %v", m.phase, moments)
		}
		moments = append(moments, at/ms)
		for _, a := range m.step(event{kind: evTick, at: at}) {
			switch a.kind {
			case actSweep:
				m.step(event{kind: evSwept, at: at})
				m.step(event{kind: evReleased, at: at, err: errEtcd})
			case actRelease:
				m.step(event{kind: evReleased, at: at, err: errEtcd})
			}
		}
	}
	// 7900: listen once more. 8000: two seconds after an unanswered SIGKILL; then the pauses between releases, up to the deadline.
	if want := []time.Duration{7900, 8000, 8100, 8300, 8700, 9500}; !slices.Equal(moments, want) {
		t.Errorf("woken at %v, want %v", moments, want)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	cfg := testConfig
	cfg.KillAfter = 20 * time.Second
	m := newMachine(cfg, 0)
	var got []string
	for _, ev := range []event{
		says(guard.KindReady), won(), says(guard.KindStarted), lostBy(errors.New("key\ngone")), says(guard.KindTermSent),
		says(guard.KindStopped), says(guard.KindKillSent), says(guard.KindTermSent),
		about("1f-1", guard.Event{Kind: guard.KindExited, Signal: 9}),
		about("1f-1", guard.Event{Kind: guard.KindStuck, Pids: []int{7}}),
		says(guard.KindGone), released(errEtcd), released(nil),
	} {
		ev.at = m.now + 10*ms
		if ev.kind == evGuard {
			ev.guard.Pid, ev.guard.Reason = 42, "why"
		}
		for _, a := range m.step(ev) {
			if a.kind == actLog {
				got = append(got, tellLine(a.line))
			}
		}
	}
	want := []string{
		`INFO acquired name=office rev=12 dur=20ms lease=1f ttl=10s renew=1s silence=2.5s term=3.5s kill=8.5s`,
		`WARN kill-after does not fit into the ttl and is cut short on loss name=office rev=12 dur=0s kill_after=20s on_loss=5s ttl=10s fitting_ttl=38s`,
		`INFO child-start name=office rev=12 dur=10ms pid=42`,
		"WARN lost name=office rev=12 dur=10ms reason=key\ngone",
		`INFO term-sent name=office rev=12 dur=10ms reason=why`,
		`WARN child was stopped by job control name=office rev=12 dur=10ms signal=signal 0 reason=why`,
		`INFO kill-sent name=office rev=12 dur=20ms reason=why`,
		`INFO child-exit name=office rev=12 dur=20ms signal=SIGKILL`,
		`WARN something of the child outlives SIGKILL name=office rev=12 dur=10ms pids=[7]`,
		`INFO released name=office rev=12 dur=40ms reason=lost`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestASlotIsNamedInTheLineAndInTheEnvironment(t *testing.T) {
	t.Parallel()
	m := newMachine(testConfig, 0)
	m.step(says(guard.KindReady))
	ev := won()
	ev.info.Slot = 2
	for _, a := range m.step(ev) {
		switch {
		case a.kind == actLog && !strings.Contains(tellLine(a.line), " slot=2 "):
			t.Errorf("no slot in %s", tellLine(a.line))
		case a.kind == actSend && a.request.Op == guard.OpStart && !slices.Contains(a.request.Spec.Env, "CONCH_SLOT=2"):
			t.Errorf("no slot in %q", a.request.Spec.Env)
		}
	}
}

func tellLine(l line) string {
	text := l.level.String() + " " + l.text
	for _, a := range l.attrs {
		text += " " + a.Key + "=" + a.Value.String()
	}
	return text
}

func TestOutcomeSaysHowLongAndWhy(t *testing.T) {
	t.Parallel()
	m := newMachine(testConfig, 0)
	var last []action
	for _, h := range []happens{
		{5, says(guard.KindReady), ""}, {100, won(), ""}, {110, says(guard.KindStarted), ""},
		{200, exitedWith(7), ""}, {210, says(guard.KindGone), ""},
		{300, signalled(syscall.SIGTERM), ""}, {1300, tick(), ""}, {1310, released(errEtcd), ""},
	} {
		h.what.at = h.at * ms
		last = m.step(h.what)
	}
	got := last[len(last)-1].outcome
	want := hold.Status{
		Outcome: hold.ResultChildExit, Code: 7, Rev: 12, Lease: 0x1f, Waited: 100 * ms, Held: 1210 * ms,
		Reason: "not released: release: etcd is away",
	}
	if got.Status != want || !got.Started || got.Released || got.Err != nil {
		t.Errorf("outcome %+v, want %+v", got, want)
	}
	if last[0].kind != actLog || last[0].line.level != slog.LevelWarn {
		t.Errorf("no WARN line about a hold that is left to its ttl: %+v", last[0])
	}
}

func TestTheInnermostHoldWins(t *testing.T) {
	t.Parallel()
	outer := []string{
		"A=1", "CONCH_NAME=outer", "CONCH_REV=1", "CONCH_LEASE=2", "CONCH_SLOT=3", "CONCH_TTL=10s", "CONCH_NAMES=x", "CONCH_NAME", "ODD", "=C:=x",
	}
	got := withHold(withoutHold(outer), "inner", hold.Info{Rev: 1<<63 + 1, Lease: 0x694d8a3c1f2e0011, Slot: -1})
	want := []string{
		"A=1", "CONCH_TTL=10s", "CONCH_NAMES=x", "ODD", "=C:=x",
		"CONCH_NAME=inner", "CONCH_REV=9223372036854775809", "CONCH_LEASE=694d8a3c1f2e0011",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if outer[1] != "CONCH_NAME=outer" {
		t.Error("the caller's environment was changed")
	}
}
