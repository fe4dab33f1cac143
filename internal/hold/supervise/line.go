package supervise

import (
	"log/slog"

	"github.com/go-coord/coord/internal/hold"
)

// transition is one line for one change of state, with the time since the last one.
func (m *machine) transition(text string, attrs ...slog.Attr) {
	m.say(slog.LevelInfo, text, m.now-m.last, attrs)
	m.last = m.now
}

// warnTransition is a transition that a quiet log shows too.
func (m *machine) warnTransition(text string, attrs ...slog.Attr) {
	m.say(slog.LevelWarn, text, m.now-m.last, attrs)
	m.last = m.now
}

// log is a line beside the transitions.
func (m *machine) log(level slog.Level, text string, attrs ...slog.Attr) {
	m.say(level, text, m.now-m.last, attrs)
}

func (m *machine) say(level slog.Level, text string, dur hold.Instant, attrs []slog.Attr) {
	all := append([]slog.Attr{
		slog.String("name", m.cfg.Name),
		slog.Uint64("rev", m.info.Rev),
		slog.Duration("dur", dur),
	}, attrs...)
	m.do(action{kind: actLog, line: line{level: level, text: text, attrs: all}})
}

// announce says that there is a new hold, with the row of bounds that tells why two children cannot
// overlap, and warns if kill-after does not fit into it. A hold that does not run out has no bounds.
func (m *machine) announce() {
	if m.info.TTL == 0 {
		m.transition("acquired")
		return
	}
	b := hold.BoundsOf(m.info.TTL, m.cfg.KillAfter, m.cfg.Margin)
	attrs := []slog.Attr{slog.String("lease", hold.FormatLease(m.info.Lease))}
	if m.info.Slot >= 0 {
		attrs = append(attrs, slog.Int("slot", m.info.Slot))
	}
	m.transition("acquired", append(attrs,
		slog.Duration("ttl", b.TTL),
		slog.Duration("renew", b.Renew),
		slog.Duration("silence", b.Silence),
		slog.Duration("term", b.Term),
		slog.Duration("kill", b.Kill),
	)...)
	if b.Grace < m.cfg.KillAfter {
		m.log(slog.LevelWarn, "kill-after does not fit into the ttl and is cut short on loss",
			slog.Duration("kill_after", m.cfg.KillAfter),
			slog.Duration("on_loss", b.Grace),
			slog.Duration("ttl", b.TTL),
			slog.Duration("fitting_ttl", hold.FittingTTL(m.cfg.KillAfter, m.cfg.Margin)),
		)
	}
}
