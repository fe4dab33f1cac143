package supervise

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// unending is the machine of a hold that does not run out, with its child started.
func unending(t *testing.T) (m *machine, lines func() []string) {
	t.Helper()
	cfg := testConfig
	cfg.Inherit, cfg.Env = true, []string{"HOME=/", "CONCH_NAME=outer", "CONCH_REV=7", "CONCH_LEASE=1f", "CONCH_SLOT=2"}
	m = newMachine(cfg, 0)
	var said []string
	step := func(ev event) []action {
		did := m.step(ev)
		for _, a := range did {
			if a.kind == actLog {
				said = append(said, a.line.level.String()+" "+a.line.text)
				for _, attr := range a.line.attrs {
					said[len(said)-1] += " " + attr.Key
				}
			}
		}
		return did
	}
	step(about("", guard.Event{Kind: guard.KindReady}))
	never := hold.Deadlines{Term: hold.Never, Kill: hold.Never}
	did := step(event{kind: evAcquired, info: hold.Info{Kind: hold.KindFence, Name: "token", Rev: 7, Slot: -1}, deadlines: never})
	start := did[len(did)-1].request
	if start.Op != guard.OpStart || start.Deadlines != never || !slices.Equal(start.Spec.Env, cfg.Env) {
		t.Errorf("started with %+v, %+v", start, start.Spec)
	}
	step(about(start.Run, guard.Event{Kind: guard.KindStarted, Pid: 42}))
	return m, func() []string { return said }
}

func TestAHoldThatDoesNotRunOut(t *testing.T) {
	t.Parallel()
	m, lines := unending(t)
	// A year later nothing is lost, and nothing is due.
	if did := tell(m.step(event{kind: evTick, at: 365 * 24 * time.Hour})); did != "" || m.lost || m.wake() != 0 {
		t.Errorf("did %q, lost %v, awake at %v", did, m.lost, m.wake())
	}
	did := tell(m.step(about(m.live, guard.Event{Kind: guard.KindExited, Code: 3, Time: 365 * 24 * time.Hour})))
	did += tell(m.step(about(m.live, guard.Event{Kind: guard.KindGone})))
	if did != "release released" {
		t.Errorf("did %q", did)
	}
	if did := tell(m.step(released(nil))); !strings.HasSuffix(did, "finish child-exit 3 released") {
		t.Errorf("did %q", did)
	}
	if want := []string{"INFO acquired name rev dur", "INFO child-start name rev dur pid"}; !slices.Equal(lines(), want) {
		t.Errorf("log %q, want %q", lines(), want)
	}
}

// There is no TTL that it could be left to.
func TestAHoldThatDoesNotRunOutStaysWhereSomethingIsLeft(t *testing.T) {
	t.Parallel()
	m, _ := unending(t)
	m.step(about(m.live, guard.Event{Kind: guard.KindExited}))
	m.step(about(m.live, guard.Event{Kind: guard.KindKillSent}))
	stuck := about(m.live, guard.Event{Kind: guard.KindStuck, Pids: []int{7}})
	stuck.at = time.Second
	m.step(stuck)
	did := m.step(event{kind: evTick, at: time.Minute})
	if tell(did) != "finish lost 70" {
		t.Errorf("did %q", tell(did))
	}
	if line := did[0].line; line.text != "it stays held until nothing of the child is left" {
		t.Errorf("it says %q", line.text)
	}
	if did[len(did)-1].outcome.Clean {
		t.Error("it says that nothing is left")
	}
}
