package supervise

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// leave begins the way out. I1: its callers are the only ones that know that nothing of the child is left,
// because nothing was started, the guard said gone, or a sweep ended empty. What on-lose has to do comes first.
func (m *machine) leave() {
	if m.phase >= clearing && m.phase != sweeping {
		return
	}
	if m.clear() {
		return
	}
	m.release()
}

// release gives the hold up. Nothing of child and hooks is left.
func (m *machine) release() {
	m.phase = releasing
	m.releaseBy = max(m.deadlines.Kill, m.now)
	m.retryPause = retryFirst
	m.attempt()
}

// attempt asks for one bounded try.
func (m *machine) attempt() {
	m.retryAt, m.releaseActive = 0, true
	m.do(action{kind: actRelease, end: m.end()})
}

// end is how the hold ends, for whoever asks who held it last.
func (m *machine) end() hold.End {
	switch {
	case m.lost:
		return hold.EndLost
	case m.evicted != nil:
		return hold.EndEvicted
	}
	return hold.EndReleased
}

// onReleased: one try returned.
func (m *machine) onReleased(err error) {
	if m.phase != releasing {
		return
	}
	m.releaseActive = false
	switch {
	case err == nil:
		m.transition("released", slog.String("reason", string(m.end())))
		m.send(guard.Request{Op: guard.OpForget, Run: m.run})
		m.finish()
	case m.givingUp || m.now >= m.releaseBy:
		m.abandon(fmt.Errorf("release: %w", err))
	default:
		m.retryAt = m.now + m.retryPause
		m.retryPause = min(2*m.retryPause, retryMost)
	}
}

// stopReleasing ends the tries: somebody wants to leave.
func (m *machine) stopReleasing() {
	m.giveUpAt, m.givingUp = 0, true
	if m.releaseActive {
		m.do(action{kind: actStopRelease}) // its answer ends the run
		return
	}
	m.abandon(errors.New("release: interrupted"))
}

// abandon ends without a release and says why (I4): the TTL of the lease decides; where there is none, whoever keeps
// what is held after this process.
func (m *machine) abandon(why error) {
	m.notReleased = why
	text := "hold is left to its ttl"
	switch {
	case !m.acquired:
		text = "a key may be left to its ttl"
	case m.info.TTL == 0:
		text = "it stays held until nothing of the child is left"
	}
	m.log(slog.LevelWarn, text, slog.String("reason", why.Error()))
	m.finish()
}

// finish states the outcome, once (I5).
func (m *machine) finish() {
	m.phase = done
	o := m.outcome()
	o.Status.Waited = m.now - m.began
	if m.acquired {
		o.Status.Rev, o.Status.Lease = m.info.Rev, m.info.Lease
		o.Status.Waited, o.Status.Held = m.acquiredAt-m.began, m.now-m.acquiredAt
		o.Released = m.notReleased == nil
	}
	o.Started, o.Signalled, o.Clean = m.started, m.signal != 0, !errors.Is(m.notReleased, errStuck)
	if m.exit != nil {
		o.Usage = m.exit.usage
	}
	if m.notReleased != nil && o.Err != m.notReleased { // which says so already
		o.Status.Reason = join(o.Status.Reason, "not released: "+m.notReleased.Error())
	}
	m.do(action{kind: actFinish, outcome: o})
}

// outcome finds the one word and the one code, in the order in which they outweigh each other.
func (m *machine) outcome() Outcome {
	stuck := errors.Is(m.notReleased, errStuck)
	switch {
	case stuck:
		return m.lostOutcome(m.notReleased)
	case errors.Is(m.notReleased, errUnclean):
		return failed(hold.ResultHookFailed, hold.CodeHookFailed, m.notReleased)
	case m.exit != nil && m.exit.kept && m.exit.signal != 0:
		return Outcome{Status: hold.Status{
			Outcome: hold.ResultChildSignal, Code: hold.SignalCode(m.exit.signal), Reason: signalName(m.exit.signal),
		}}
	case m.exit != nil && m.exit.kept:
		return Outcome{Status: hold.Status{Outcome: hold.ResultChildExit, Code: m.exit.code}}
	case m.started && m.lost:
		return m.lostOutcome(m.cause)
	case m.started && m.evicted != nil:
		return m.lostOutcome(m.evicted)
	case m.started:
		return m.lostOutcome(m.err) // the guard failed, and the child's own end is not known
	}

	// Nothing was started.
	switch {
	case m.signal != 0:
		err := fmt.Errorf("signal %s before the child started", signalName(int(m.signal)))
		return failed(hold.ResultSignalled, hold.SignalCode(int(m.signal)), err)
	case m.lost:
		return m.lostOutcome(m.cause)
	case m.evicted != nil:
		return m.lostOutcome(m.evicted)
	}
	code := hold.ExitCode(m.err)
	switch code {
	case hold.CodeNotFound, hold.CodeNotExecutable:
		return failed(hold.ResultNotStarted, code, m.err)
	case hold.CodeNotAcquired:
		return failed(hold.ResultNotAcquired, code, m.err)
	case hold.CodeLost:
		return m.lostOutcome(m.err)
	}
	return failed(hold.ResultUnreachable, code, m.err)
}

func (m *machine) lostOutcome(err error) Outcome {
	if errors.Is(err, hold.ErrEvicted) {
		return failed(hold.ResultEvicted, hold.CodeLost, err)
	}
	return failed(hold.ResultLost, hold.CodeLost, err)
}

func failed(result hold.Result, code int, err error) Outcome {
	return Outcome{Status: hold.Status{Outcome: result, Code: code, Reason: err.Error()}, Err: err}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
