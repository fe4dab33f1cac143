package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// shell runs the hooks.
const shell = "/bin/sh"

// The variables that hooks have beside those of the child.
const (
	envHook = "CONCH_HOOK" // on-acquire or on-lose
	envHeld = "CONCH_HELD" // on-lose: yes while the hold is kept, no after a loss
)

// String is how the part is named in lines and run ids.
func (p part) String() string {
	switch p {
	case onAcquire:
		return "on-acquire"
	case onLose:
		return "on-lose"
	}
	return "child"
}

// isHook tells by the id of a run what it is.
func isHook(run string) bool { return strings.Contains(run, "/") }

// hook is a script as the guard is to start it: it must not eat the child's input, nor write into its output.
func (m *machine) hook(script string) *guard.Spec {
	return &guard.Spec{
		Path: shell,
		Argv: []string{"sh", "-c", HookText(script), "conch"},
		Env:  append(m.environ(), envHook+"="+m.part.String(), envHeld+"="+yesNo(!m.lost)),
		Dir:  m.cfg.Dir,
	}
}

// HookText is what the shell gets that runs a hook: one argument.
func HookText(script string) string { return "exec </dev/null >&2\n" + script }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// ran notes that something was started, or may have been.
func (m *machine) ran() {
	m.indebted = true
	m.started = m.started || m.part == theChild
}

// endHook: on-acquire takes too long.
func (m *machine) endHook() {
	m.hookBy = 0
	m.cut(m.overtime())
	m.stop(m.now+m.cfg.KillAfter, "on-acquire "+m.overtime())
}

// cut notes that a hook which has not ended is told to: it counts as failed, whatever it exits with.
func (m *machine) cut(why string) {
	if m.hookExit == nil && m.hookCut == "" {
		m.hookCut = why
	}
}

// hookReason is why on-lose got a signal. Its deadlines, as the guard knows them, are the limits of a hook.
func (m *machine) hookReason(ev guard.Event) string {
	switch {
	case ev.Reason != guard.ReasonDeadline:
		return ev.Reason
	case ev.Kind == guard.KindKillSent:
		return guard.ReasonKillAfter
	}
	return m.overtime()
}

func (m *machine) overtime() string { return fmt.Sprintf("did not end within %v", m.cfg.HookTimeout) }

// onEquipped: nothing of on-acquire is left. The child starts if it succeeded and nothing else came in between.
func (m *machine) onEquipped() {
	m.phase = held
	why := m.hookFailure()
	switch {
	case m.leaving():
		m.leave()
	case why != nil:
		m.err = fmt.Errorf("%w: %w", hold.ErrNotAcquired, why)
		m.leave()
	default:
		m.equipped = true
		m.tryStart()
	}
}

// hookFailure says why a hook that is gone did not succeed, or nil.
func (m *machine) hookFailure() error {
	var why string
	switch e := m.hookExit; {
	case m.hookCut != "":
		why = m.hookCut
	case e == nil:
		why = "ended, and the guard did not say how"
	case e.signal != 0:
		why = "was ended by " + signalName(e.signal)
	case e.code != 0:
		why = fmt.Sprintf("exited %d", e.code)
	default:
		return nil
	}
	if m.part == onLose {
		return fmt.Errorf("%w: it %s", errUnclean, why)
	}
	return errors.New("on-acquire " + why)
}

// clear starts on-lose where it is due, and reports whether it did. It has deadlines of its own: after a loss nothing is held,
// and what it has to undo stands all the same.
func (m *machine) clear() bool {
	if m.cfg.OnLose == "" || !m.indebted {
		return false
	}
	m.phase = clearing
	if m.guardGone {
		m.cleared(fmt.Errorf("%w: the guard is gone", errUnclean))
		return true
	}
	m.do(action{kind: actTakeTerminal})
	m.begin(onLose)
	d := hold.Deadlines{Term: m.now + m.cfg.HookTimeout, Kill: m.now + m.cfg.HookTimeout + m.cfg.KillAfter}
	m.stopBy = d.Kill
	m.start(d, m.hook(m.cfg.OnLose))
	return true
}

// cleared: on-lose is over, and nothing of it is left.
func (m *machine) cleared(why error) {
	switch {
	case why == nil:
		m.release()
	case m.cfg.FenceOnLose:
		m.abandon(why)
	default:
		m.log(slog.LevelWarn, "on-lose failed", slog.String("reason", why.Error()))
		m.release()
	}
}
