package supervise

import (
	"cmp"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// onGuard takes in what the guard says.
func (m *machine) onGuard(ev guard.Event) {
	switch ev.Kind {
	case guard.KindReady:
		m.guardReady = true
		m.tryStart()
		return
	case guard.KindLost:
		m.onGuardGone(false, cmp.Or(ev.Reason, "it ended"))
		return
	}
	m.heardSince = 0 // it is not frozen
	// What is said about another run is of no interest, nor what is said after the release began.
	if ev.Run != m.live || m.phase < starting || m.phase > sweeping {
		return
	}
	switch ev.Kind {
	case guard.KindStarted:
		m.onStarted(ev)
	case guard.KindRefused:
		m.onRefused(ev)
	case guard.KindTermSent, guard.KindKillSent:
		m.onSent(ev)
	case guard.KindExited:
		m.onExited(ev)
	case guard.KindStopped:
		m.log(slog.LevelWarn, "child was stopped by job control",
			slog.String("signal", signalName(ev.Signal)), slog.String("reason", cmp.Or(ev.Reason, "continued")))
	case guard.KindStuck:
		m.onStuck(ev)
	case guard.KindGone:
		m.onGone()
	}
}

func (m *machine) onStarted(ev guard.Event) {
	m.ran()
	if m.phase == starting {
		m.phase = running
	}
	m.transition(m.part.String()+"-start", slog.Int("pid", ev.Pid))
}

// onRefused: nothing was started, and nothing will be under this run id.
func (m *machine) onRefused(ev guard.Event) {
	switch {
	case m.phase == clearing && ev.Code == 0: // too late: its own limit, there is no other
		m.cleared(fmt.Errorf("%w: it did not start within %v", errUnclean, m.cfg.HookTimeout))
		return
	case m.phase == clearing:
		m.cleared(fmt.Errorf("%w: exec %s: %w", errUnclean, shell, syscall.Errno(ev.Code)))
		return
	case m.phase != starting:
		return
	}
	m.phase, m.hookBy = held, 0
	switch {
	case m.leaving():
		m.leave()
	case ev.Code == 0:
		// Too late by the guard's clock: once more after the next renewal, or at once if that was under way.
		m.refusedTerm = m.told.Term
		m.tryStart()
	case m.part == onAcquire:
		m.err = fmt.Errorf("%w: on-acquire: exec %s: %w", hold.ErrNotAcquired, shell, syscall.Errno(ev.Code))
		m.leave()
	default:
		m.err = execError(syscall.Errno(ev.Code), m.cfg.Path)
		m.leave()
	}
}

// execError tells a command that is not there from one that cannot be run.
func execError(errno syscall.Errno, path string) error {
	is := hold.ErrNotExecutable
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		is = hold.ErrNotFound
	case syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM:
		is = hold.ErrNoGuard // the system has no room for a process: that says nothing about the command
	}
	return fmt.Errorf("%w: exec %s: %w", is, hold.Escape(path), errno)
}

// onSent: the guard sent SIGTERM or SIGKILL.
func (m *machine) onSent(ev guard.Event) {
	// It did so without having been asked: its own timer ran out, so the child was told to stop, and no
	// renewal that was under way can take that back (I3). After the child's exit it ends leftovers.
	reason := ev.Reason
	switch {
	case m.phase == clearing:
		m.cut(m.overtime())
		reason = m.hookReason(ev)
	case m.stopBy == 0 && m.exit == nil && m.hookExit == nil:
		m.lose(errTimer)
	}
	text, sent := "term-sent", &m.termSent
	if ev.Kind == guard.KindKillSent {
		text, sent = "kill-sent", &m.killSent
	}
	if !*sent {
		*sent = true
		m.transition(text, slog.String("reason", reason))
	}
}

// onExited: the direct child ended. Its code counts only if the hold was kept then; the guard's clock
// decides, because this process may have been frozen meanwhile.
func (m *machine) onExited(ev guard.Event) {
	if m.ended() {
		return
	}
	if ev.Time >= m.deadlines.Term {
		m.lose(errSilent)
	}
	m.ran()
	how := &exit{code: ev.Code, signal: ev.Signal, kept: !m.lost && m.evicted == nil, usage: ev.Usage}
	if m.part == theChild {
		m.exit = how
	} else {
		m.hookExit, m.hookBy = how, 0
	}
	attrs := []slog.Attr{slog.Int("code", ev.Code)}
	if ev.Signal != 0 {
		attrs = []slog.Attr{slog.String("signal", signalName(ev.Signal))}
	}
	m.transition(m.part.String()+"-exit", attrs...)

	// The guard ends what is left over by itself, in the time that it was given at the start.
	if m.stopBy == 0 {
		m.stopBy = m.now + m.cfg.KillAfter
	}
}

// onStuck: SIGKILL was sent and something is still there.
func (m *machine) onStuck(ev guard.Event) {
	if m.stuckSince != 0 || m.phase == sweeping {
		return
	}
	m.stuckSince = m.now
	m.log(slog.LevelWarn, "something of the child outlives SIGKILL", slog.Any("pids", ev.Pids))
}

// ended reports whether the run that counts has ended itself.
func (m *machine) ended() bool {
	if m.part == theChild {
		return m.exit != nil
	}
	return m.hookExit != nil
}

// onGone: nothing of the run is left, and that is proven.
func (m *machine) onGone() {
	switch {
	case m.phase == sweeping:
		return // the sweep that is under way says the same
	case m.part == onAcquire:
		m.onEquipped()
		return
	case m.part == onLose:
		m.cleared(m.hookFailure())
		return
	case m.exit == nil:
		m.started, m.indebted, m.err = true, true, errUnknown
	}
	m.leave()
}

// onGuardGone: the guard ended, or does not listen any more and has to be killed. Its timers are gone with
// it, so this is loss, and what it left behind is ours to end.
func (m *machine) onGuardGone(kill bool, why string) {
	if m.guardGone {
		return
	}
	switch m.phase {
	case waiting, held:
		m.failGuard(kill, why)
	case starting, running:
		m.guardGone = true
		m.lose(fmt.Errorf("%w: %s", errNoGuard, why))
		m.sweep(kill)
	case clearing: // the child is gone: nothing is lost but the hook
		m.guardGone = true
		m.sweep(kill)
	default:
		m.guardGone = true
	}
}

// takeOver ends a guard that does not do its work, and does it.
func (m *machine) takeOver(why error) {
	m.guardGone = true
	if m.err == nil && !m.lost && m.phase != clearing {
		m.err = why
	}
	m.log(slog.LevelWarn, "ending the guard and what is left of the child", slog.String("reason", why.Error()))
	m.sweep(true)
}

// sweep begins to end what the guard left. Whether a start that was on its way came about is not known: it
// counts as if it had.
func (m *machine) sweep(kill bool) {
	m.phase, m.hookBy = sweeping, 0
	m.ran()
	if kill {
		m.do(action{kind: actKillGuard})
	}
	m.do(action{kind: actSweep})
}

// onSwept: I1 rests on err being nil only if nothing is left.
func (m *machine) onSwept(err error) {
	switch {
	case m.phase != sweeping:
	case err != nil:
		m.abandon(fmt.Errorf("%w: %w", errStuck, err))
	case m.part == onLose:
		m.cut("was ended: the guard is gone")
		m.cleared(m.hookFailure())
	default:
		m.leave()
	}
}
