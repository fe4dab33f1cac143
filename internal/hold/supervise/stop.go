package supervise

import (
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"golang.org/x/sys/unix"
)

// lose: the hold is lost. That is remembered for good (I3), and the child has to end.
func (m *machine) lose(cause error) {
	if m.lost || m.phase == releasing || m.phase == done {
		return // what is over cannot be lost: nothing of the child is left
	}
	m.lost, m.cause = true, cause
	m.warnTransition("lost", slog.String("reason", plain(cause)))
	switch m.phase {
	case held:
		m.leave()
	case starting, running:
		m.stop(min(m.now+m.cfg.KillAfter, m.deadlines.Kill), cause.Error())
	}
}

// leaving reports whether nothing is to be started any more.
func (m *machine) leaving() bool { return m.lost || m.signal != 0 || m.evicted != nil }

// stop asks the guard to end the run: SIGTERM now, SIGKILL at killAt. A later call can only shorten that.
func (m *machine) stop(killAt hold.Instant, reason string) {
	if m.stopBy == 0 || killAt < m.stopBy {
		m.stopBy = killAt
	}
	m.send(guard.Request{Op: guard.OpStop, Run: m.live, KillAt: m.stopBy, Reason: reason})
}

// onEvicted: an operator asks us to leave. The child ends as at a signal, in full order and with the hold kept. Whoever is
// on the way out already goes on as before.
func (m *machine) onEvicted(by error) {
	if m.lost || m.signal != 0 || m.evicted != nil || m.exit != nil || m.phase < held || m.phase > running {
		return
	}
	m.evicted = by
	m.warnTransition("evicted", slog.String("reason", plain(by)))
	switch m.phase {
	case held:
		m.leave()
	case starting, running:
		m.stop(m.now+m.cfg.KillAfter, by.Error())
	}
}

// plain is an error without the name of its kind, which the line says already.
func plain(err error) string {
	text := err.Error()
	for _, kind := range []error{hold.ErrLost, hold.ErrEvicted} {
		text = strings.TrimPrefix(text, kind.Error()+": ")
	}
	return text
}

// onSignal: this process got a signal. Those that would end a program end the child, in full
// order and with the hold kept; the child's own signals are passed on; the rest is not ours.
func (m *machine) onSignal(sig syscall.Signal) {
	switch {
	case sig == syscall.SIGUSR1, sig == syscall.SIGUSR2, sig == syscall.SIGWINCH:
		if m.part == theChild && (m.phase == starting || m.phase == running) {
			m.send(guard.Request{Op: guard.OpSignal, Run: m.live, Signal: int(sig)})
		}
		return
	case !AsksToEnd(sig):
		return
	}
	first := m.signal == 0
	if first {
		m.signal = sig
	}

	switch m.phase {
	case waiting:
		// The acquirer takes its key away before it returns. A second signal bounds that.
		if first {
			m.do(action{kind: actCancelAcquire})
		} else if m.giveUpAt == 0 {
			m.giveUpAt = m.now + leaveWithin
		}
	case held:
		m.leave()
	case clearing:
		// The first one asks for the end, and this is the way to it. Whoever asks again has no patience for on-lose.
		if !first {
			why := "second signal " + signalName(int(sig))
			m.stopBy = m.now
			m.cut("was ended by a " + why)
			m.send(guard.Request{Op: guard.OpKill, Run: m.live, Reason: why})
		}
	case starting, running:
		reason := "signal " + signalName(int(sig))
		switch {
		case !first:
			m.stopBy = min(m.stopBy, m.now)
			m.send(guard.Request{Op: guard.OpKill, Run: m.live, Reason: "second " + reason})
		case !m.lost: // else it is being stopped already, and no later than this would
			m.stop(m.now+m.cfg.KillAfter, reason)
		}
	case releasing:
		if m.giveUpAt == 0 {
			m.giveUpAt = m.now + leaveWithin
		}
	}
}

// signalName is "SIGTERM", or "signal 40" where there is no name.
func signalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}
