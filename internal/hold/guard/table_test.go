package guard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// play is a table whose hands only write down what they are asked to do. Time is in seconds.
type play struct {
	*testing.T
	table  table
	did    []string
	events []Event
}

func newPlay(t *testing.T) *play {
	t.Parallel()
	p := &play{T: t}
	p.table.hands = p
	return p
}

func (p *play) note(format string, args ...any)   { p.did = append(p.did, fmt.Sprintf(format, args...)) }
func (p *play) fork(r *run)                       { p.note("fork %s", r.id) }
func (p *play) signal(r *run, sig syscall.Signal) { p.note("signal %s %d", r.id, int(sig)) }
func (p *play) terminate(r *run)                  { p.note("terminate %s", r.id) }
func (p *play) kill(r *run)                       { p.note("kill %s", r.id) }
func (p *play) release(w *will, closing bool)     { p.note("release %s %v", w.run, closing) }
func (p *play) emit(e Event)                      { p.note("%s %s", e.Kind, e.Run); p.events = append(p.events, e) }
func sec(s float64) hold.Instant                  { return hold.Instant(math.Round(s*1e6)) * 1000 }
func (p *play) ask(s float64, q Request)          { p.table.handle(q, sec(s)); p.table.step(sec(s)) }
func (p *play) at(s float64)                      { p.table.step(sec(s)) }
func (p *play) run(id string) *run                { return p.table.find(id) }
func deadlines(term, kill float64) (d hold.Deadlines) {
	return hold.Deadlines{Term: sec(term), Kill: sec(kill)}
}

// did is what was done since the last call.
func (p *play) want(want string) {
	p.Helper()
	got := strings.Join(p.did, ", ")
	p.did = nil
	if got != want {
		p.Fatalf("did %q, want %q", got, want)
	}
}

// wantNext is when the table wants to be asked again.
func (p *play) wantNext(s float64) {
	p.Helper()
	if got := p.table.next(); got != sec(s) {
		p.Fatalf("next at %v, want %v", got, sec(s))
	}
}

// started is a table with a running child.
func (p *play) started(id string, d hold.Deadlines, killAfter time.Duration, testament string) *run {
	p.Helper()
	p.ask(1, Request{Op: OpStart, Run: id, Spec: &Spec{Argv: []string{"x"}}, Deadlines: d, KillAfter: killAfter, Testament: []byte(testament)})
	r := p.run(id)
	p.table.forked(r, 100, sec(1))
	p.at(1)
	p.did = nil
	return r
}

// end ends a run's leader and proves it gone.
func (p *play) end(r *run, s float64) {
	p.table.ended(r, 0, 0, sec(s))
	p.table.gone(r, sec(s))
	p.table.step(sec(s))
}

// Red when the timers of a run start with its child: they have to be there before the fork.
func TestBothTimersAreArmedBeforeTheFork(t *testing.T) {
	p := newPlay(t)
	p.ask(1, Request{Op: OpStart, Run: "1", Spec: &Spec{Argv: []string{"x"}}, Deadlines: deadlines(3, 5)})
	p.want("fork 1")
	p.wantNext(3)
	p.at(3)
	p.want("")
	p.wantNext(5)
	// exec hangs: whatever there is gets SIGKILL, and again until the fork is answered.
	p.at(5)
	p.want("kill 1, kill-sent 1")
	p.at(5.1)
	p.want("kill 1")
	p.table.forked(p.run("1"), 100, sec(5.2))
	p.at(5.2)
	p.want("started 1, signal 1 15, signal 1 18, term-sent 1, kill 1")
}

func TestTermThenKillAtTheirInstants(t *testing.T) {
	p := newPlay(t)
	r := p.started("1", deadlines(3, 5), 0, "")
	p.at(2.999)
	p.want("")
	p.at(3)
	p.want("signal 1 15, signal 1 18, term-sent 1")
	p.at(4.999)
	p.want("")
	p.at(5)
	p.want("kill 1, kill-sent 1")
	p.wantNext(5.002)
	p.at(5.002)
	p.want("kill 1")
	p.at(6)
	p.want("kill 1, stuck 1")
	p.at(7.9)
	p.want("kill 1")
	p.at(8)
	p.want("kill 1, stuck 1")
	p.table.woken(sec(8))
	p.at(8)
	p.want("kill 1")
	p.end(r, 9)
	p.want("exited 1, gone 1")
	p.wantNext(0)
}

// Red when extend takes whatever it is given, or works after Term.
func TestExtendRaisesUntilTermHasPassed(t *testing.T) {
	p := newPlay(t)
	r := p.started("1", deadlines(3, 5), 0, "")
	p.ask(2, Request{Op: OpExtend, Run: "1", Deadlines: deadlines(6, 8)})
	p.ask(2, Request{Op: OpExtend, Run: "1", Deadlines: deadlines(4, 9)})
	p.ask(2, Request{Op: OpExtend, Run: "1"})
	if r.deadlines != deadlines(6, 9) {
		t.Fatal(r.deadlines)
	}
	p.at(6)
	p.want("signal 1 15, signal 1 18, term-sent 1")
	p.ask(6, Request{Op: OpExtend, Run: "1", Deadlines: deadlines(20, 20)})
	p.wantNext(9)
}

func TestAStoppedRunIsKilledAtTheEarlierOfBothInstants(t *testing.T) {
	p := newPlay(t)
	p.started("1", deadlines(3, 5), 0, "")
	p.ask(2, Request{Op: OpStop, Run: "1", KillAt: sec(10), Reason: "operator"})
	p.want("signal 1 15, signal 1 18, term-sent 1")
	// Renewals go on while the child has its time.
	p.ask(2.5, Request{Op: OpExtend, Run: "1", Deadlines: deadlines(30, 40)})
	p.at(9.999)
	p.want("")
	p.at(10)
	p.want("kill 1, kill-sent 1")
}

// Red when the last word counts: a wrapper that was told of a loss late would lengthen what its guard knows already.
func TestTheEarliestWishForAKillStands(t *testing.T) {
	p := newPlay(t)
	p.started("1", deadlines(30, 40), 0, "")
	p.ask(2, Request{Op: OpStop, Run: "1", KillAt: sec(6), Reason: "operator"})
	p.want("signal 1 15, signal 1 18, term-sent 1")
	p.ask(3, Request{Op: OpStop, Run: "1", KillAt: sec(10), Reason: "operator"})
	p.wantNext(6)
	p.ask(4, Request{Op: OpStop, Run: "1", KillAt: sec(5), Reason: "operator"})
	p.at(4.999)
	p.want("")
	p.at(5)
	p.want("kill 1, kill-sent 1")
}

// Red when SIGKILL is given the reason of the SIGTERM before it.
func TestEachSignalHasAReasonOfItsOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		what       func(p *play, r *run)
		term, kill string
	}{
		"asked to stop": {func(p *play, _ *run) { p.ask(1, Request{Op: OpStop, Run: "1", Reason: "signal SIGTERM"}) }, "signal SIGTERM", ReasonKillAfter},
		"the deadline":  {func(p *play, _ *run) { p.at(10) }, ReasonDeadline, ReasonDeadline},
		"asked to kill": {func(p *play, _ *run) { p.ask(1, Request{Op: OpKill, Run: "1", Reason: "second signal"}) }, ReasonDeadline, "second signal"},
		"what is left": {func(p *play, r *run) {
			p.table.ended(r, 0, 0, sec(1))
			p.table.remains(r, []int{77}, sec(1))
		}, leftOver, ReasonKillAfter},
		"a loss, clipped": {func(p *play, _ *run) { p.ask(9, Request{Op: OpStop, Run: "1", KillAt: sec(20), Reason: "key gone"}) }, "key gone", ReasonDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			r := p.started("1", deadlines(10, 20), 2*time.Second, "")
			tt.what(p, r)
			p.at(30)
			reasons := map[Kind]string{}
			for _, e := range p.events {
				reasons[e.Kind] = e.Reason
			}
			if reasons[KindTermSent] != tt.term || reasons[KindKillSent] != tt.kill {
				t.Errorf("%q and %q, want %q and %q", reasons[KindTermSent], reasons[KindKillSent], tt.term, tt.kill)
			}
		})
	}
}

func TestAStopWithoutAnInstantMeansKillAfter(t *testing.T) {
	p := newPlay(t)
	p.started("1", hold.Deadlines{}, 2*time.Second, "")
	p.wantNext(0)
	p.ask(3, Request{Op: OpStop, Run: "1"})
	p.want("signal 1 15, signal 1 18, term-sent 1")
	p.wantNext(5)
	p.ask(4, Request{Op: OpStop, Run: "1", KillAt: sec(9)})
	p.want("")
	p.wantNext(5)
}

// The child may be up before its start is known here: whoever sees it work may well send it a signal. Red when signals are
// dropped until then.
func TestWhatComesDuringTheForkIsHeardAfterIt(t *testing.T) {
	p := newPlay(t)
	p.ask(1, Request{Op: OpStart, Run: "1", Spec: &Spec{Argv: []string{"x"}}})
	p.ask(1, Request{Op: OpStop, Run: "1", KillAt: sec(9)})
	p.ask(1, Request{Op: OpSignal, Run: "1", Signal: 10})
	p.want("fork 1")
	p.table.forked(p.run("1"), 100, sec(2))
	p.at(2)
	p.want("started 1, signal 1 10, signal 1 15, signal 1 18, term-sent 1")
}

// Red when the leader's end ends the escalation.
func TestLeftoversHaveKillAfterFromTheExit(t *testing.T) {
	p := newPlay(t)
	r := p.started("1", deadlines(30, 40), 2*time.Second, "")
	p.table.ended(r, 0, 0, sec(3))
	p.table.remains(r, []int{7}, sec(3))
	p.at(3)
	p.want("exited 1, terminate 1, term-sent 1")
	p.table.remains(r, []int{7}, sec(4))
	p.at(4)
	p.want("")
	p.wantNext(5)
	p.at(5)
	p.want("kill 1, kill-sent 1")
}

// Red when KillAfter cuts what Stop allowed.
func TestLeftoversOfAStoppedRunKeepItsInstant(t *testing.T) {
	p := newPlay(t)
	r := p.started("1", deadlines(30, 40), 0, "")
	p.ask(2, Request{Op: OpStop, Run: "1", KillAt: sec(4)})
	p.table.ended(r, 0, 15, sec(3))
	p.table.remains(r, []int{7}, sec(3))
	p.at(3)
	p.want("signal 1 15, signal 1 18, term-sent 1, exited 1, terminate 1")
	p.wantNext(4)
}

func TestJobControlIsUndoneAtABoundedRate(t *testing.T) {
	p := newPlay(t)
	r := p.started("1", hold.Deadlines{}, 0, "")
	p.table.stoppedBy(r, syscall.SIGTSTP, sec(1))
	p.at(1)
	p.want("signal 1 18, stopped 1")
	p.table.stoppedBy(r, syscall.SIGSTOP, sec(1.1))
	p.at(1.1)
	p.want("")
	p.wantNext(1.25)
	p.at(1.25)
	p.want("signal 1 18, stopped 1")
	p.table.stoppedBy(r, syscall.SIGTTIN, sec(2))
	p.at(2)
	p.want("stopped 1")
	p.wantNext(0)
}

func TestRequestsThatComeTooLateMeanNothing(t *testing.T) {
	p := newPlay(t)
	for _, op := range []Op{OpExtend, OpStop, OpKill, OpSignal, OpForget, "unheard-of"} {
		p.ask(1, Request{Op: op, Run: "1", Signal: 9})
	}
	p.want("")
	p.started("1", hold.Deadlines{}, 0, "")
	p.ask(2, Request{Op: OpStart, Run: "1", Spec: &Spec{Argv: []string{"x"}}})
	p.want("refused 1")
	p.ask(2, Request{Op: OpBye})
	p.want("kill 1, kill-sent 1")
	p.ask(2, Request{Op: OpStart, Run: "2", Spec: &Spec{Argv: []string{"x"}}})
	p.want("refused 2")
	// The end of the pipe after the good-bye changes nothing.
	p.table.lost(sec(2))
	if p.table.mode != leaving {
		t.Fatal(p.table.mode)
	}
}

// Red when blocked looks at the run of the same name only.
func TestATestamentWaitsForTheHooksOfItsRunAndForStrangers(t *testing.T) {
	p := newPlay(t)
	child := p.started("7", hold.Deadlines{}, 0, "t")
	hook := p.started("7/on-lose", hold.Deadlines{}, 0, "")
	other := p.started("8", hold.Deadlines{}, 0, "u")
	stranger := p.started("x", hold.Deadlines{}, 0, "")
	p.table.lost(sec(2))
	p.at(2)
	p.want("kill 7, kill-sent 7, kill 7/on-lose, kill-sent 7/on-lose, kill 8, kill-sent 8, kill x, kill-sent x")
	p.end(child, 2)
	p.end(stranger, 2)
	p.want("exited 7, gone 7, exited x, gone x")
	p.end(hook, 2)
	p.want("exited 7/on-lose, gone 7/on-lose, release 7 false")
	p.end(other, 2)
	p.want("exited 8, gone 8, release 8 false")
	p.wantNext(0)
	p.table.released(p.table.wills[0], false, true, sec(3))
	p.table.released(p.table.wills[0], false, true, sec(3))
	if !p.table.done() {
		t.Fatal("not done")
	}
}

// Red when a run that no testament covers blocks none of them.
func TestATestamentWaitsForARunThatNoneCovers(t *testing.T) {
	p := newPlay(t)
	child := p.started("7", hold.Deadlines{}, 0, "t")
	stranger := p.started("70/x", hold.Deadlines{}, 0, "")
	p.table.lost(sec(2))
	p.at(2)
	p.want("kill 7, kill-sent 7, kill 70/x, kill-sent 70/x")
	p.end(child, 2)
	p.want("exited 7, gone 7")
	p.end(stranger, 2)
	p.want("exited 70/x, gone 70/x, release 7 false")
}

func TestAReleaseThatFailsIsRepeatedThenGivenUp(t *testing.T) {
	p := newPlay(t)
	p.ask(1, Request{Op: OpBequeath, Run: "1", Testament: []byte("t")})
	p.table.lost(sec(1))
	p.at(1)
	w := p.table.wills[0]
	now := 1.0
	for _, pause := range []float64{0.1, 0.2, 0.4, 0.8, 1.6} {
		p.want("release 1 false")
		p.table.released(w, false, false, sec(now))
		p.at(now)
		p.want("")
		now += pause
		p.wantNext(now)
		p.at(now)
	}
	p.want("release 1 false")
	p.table.released(w, false, false, sec(now))
	if !p.table.done() {
		t.Fatal("not done")
	}
}

func TestManyTestamentsAreExecutedAFewAtATime(t *testing.T) {
	p := newPlay(t)
	for i := range 6 {
		p.ask(1, Request{Op: OpBequeath, Run: fmt.Sprint(i), Testament: []byte("t")})
	}
	p.table.lost(sec(1))
	p.at(1)
	p.want("release 0 false, release 1 false, release 2 false, release 3 false")
	p.wantNext(0)
	p.table.released(p.table.wills[2], false, true, sec(2))
	p.at(2)
	p.want("release 4 false")
}

// Red when the record is closed for a run that ended by itself, or twice, or at once.
func TestTheRecordOfAFrozenWrapperIsClosedOnce(t *testing.T) {
	p := newPlay(t)
	p.end(p.started("calm", deadlines(3, 5), 0, "t"), 2)
	p.want("exited calm, gone calm")
	p.wantNext(0)

	r := p.started("late", deadlines(3, 5), 0, "t")
	p.at(3)
	p.end(r, 4)
	p.want("signal late 15, signal late 18, term-sent late, exited late, gone late")
	p.wantNext(4.5)
	p.at(4.499)
	p.want("")
	p.at(4.5)
	p.want("release late true")
	p.table.released(p.table.wills[1], true, false, sec(5))
	p.at(60)
	p.want("")
	p.wantNext(0)
}

func TestAWrapperThatSpeaksInTimeKeepsItsRecord(t *testing.T) {
	p := newPlay(t)
	r := p.started("1", deadlines(3, 5), 0, "t")
	p.at(3)
	p.end(r, 4)
	p.ask(4.2, Request{Op: OpForget, Run: "1"})
	p.did = nil
	p.at(60)
	p.want("")
}

func TestEarlierTakesZeroForNever(t *testing.T) {
	t.Parallel()
	var got []hold.Instant
	for _, pair := range [][2]hold.Instant{{0, 0}, {0, 3}, {3, 0}, {2, 3}, {3, 2}} {
		got = append(got, earlier(pair[0], pair[1]))
	}
	if !slices.Equal(got, []hold.Instant{0, 3, 3, 2, 2}) {
		t.Fatal(got)
	}
}
