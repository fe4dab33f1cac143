package coord

import "time"

// Metrics are functions that are told what happens, for counters of the caller's choice: this package depends
// on no metrics library. Each may be nil. They are called by the goroutine that does the work, so they must
// return at once and call nothing of this package.
type Metrics struct {
	// Renewal is told of every attempt to renew a lease: how long it took, whether it proved the lease alive
	// (a plain renewal of a session that nothing depends on does not), and why it failed.
	Renewal func(took time.Duration, verified bool, err error)
	// Lost is told once of each session that was lost, with the cause.
	Lost func(cause error)
	// Campaign is told of every campaign for key that ended: how long it took, and its error, nil for one that
	// leads. A try that found the place taken is not told of.
	Campaign func(key string, took time.Duration, err error)
	// Healed is told when a host that had lost its key is registered again: how long it was not, from the
	// moment at which the loss was seen.
	Healed func(gap time.Duration)
}

func (m Metrics) renewal(took time.Duration, verified bool, err error) {
	if m.Renewal != nil {
		m.Renewal(took, verified, err)
	}
}

func (m Metrics) lost(cause error) {
	if m.Lost != nil {
		m.Lost(cause)
	}
}

func (m Metrics) campaign(key string, c *attempt, err error) {
	if m.Campaign != nil {
		m.Campaign(key, c.s.clock()-c.began, err)
	}
}

func (m Metrics) healed(gap time.Duration) {
	if m.Healed != nil {
		m.Healed(gap)
	}
}
