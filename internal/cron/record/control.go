package record

// Kill asks that a start be ended. It stands on the lease of the daemon that runs it.
type Kill struct {
	By     string `json:"by"`
	Why    string `json:"why,omitempty"`
	Reason Reason `json:"reason,omitempty"` // ReasonReplaced, or else ReasonKill
	At     int64  `json:"at_ms"`
}

// Stop is a pause of the whole cluster, or the drain of a node. A pause that is over stays, with Resumed set, since
// what was due meanwhile is reckoned from it.
type Stop struct {
	By      string `json:"by"`
	Why     string `json:"why,omitempty"`
	At      int64  `json:"at_ms"`
	Until   int64  `json:"until_ms,omitempty"`   // unix milliseconds; 0: until somebody ends it
	Resumed int64  `json:"resumed_ms,omitempty"` // 0: it was not ended
}

// In reports whether it is in force at a moment in unix milliseconds.
func (s Stop) In(ms int64) bool { return s.Resumed == 0 && (s.Until == 0 || ms < s.Until) }

// End is when it ended, or will; 0: nobody knows.
func (s Stop) End() int64 {
	if s.Resumed != 0 && (s.Until == 0 || s.Resumed < s.Until) {
		return s.Resumed
	}
	return s.Until
}

// Card is what a daemon says of itself beside its registration: what changes while it lives.
type Card struct {
	Host       string   `json:"host"`
	Clock      int64    `json:"clock_ms"` // its wall clock when it wrote this
	Zones      string   `json:"tzdata"`   // its time zone database: part of what a tick is
	Running    int      `json:"running"`
	MaxRunning int      `json:"max_running"`
	Users      []string `json:"users"` // as whom jobs may run there; empty: nobody but the daemon's own
	User       string   `json:"user"`  // the daemon's own
	Stopping   bool     `json:"stopping,omitempty"`
	Unfit      string   `json:"unfit,omitempty"` // why it claims nothing; empty: it does
}
