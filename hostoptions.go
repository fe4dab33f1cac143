package coord

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"
)

// LivenessOptions configure [RegisterHostLiveness]. The zero value is usable.
type LivenessOptions struct {
	// Prefix is where hosts register. Default [HostsPrefix].
	Prefix string
	// LeaseTTLSec is the lease time to ask for, in seconds: how long a host that died still looks alive.
	// Default [DefaultLeaseTTLSec]. etcd may grant more.
	LeaseTTLSec int64
	// Refresh is the time from one renewal to the next, from 100 ms to less than half of the lease time.
	// Default [DefaultRefreshInterval], or a third of a lease time that is short for that. Where proofs are
	// asked for (see [HostLiveness.Context]) renewals come every tenth of the lease time instead.
	Refresh time.Duration
	// Logger gets a line for each loss, each duplicate and each return, and renewals that failed at debug
	// level. nil discards.
	Logger *slog.Logger

	// Grace is the time between the end of a [Proof] and the moment by which the work under it has to be
	// over. Default 5 s; cut to what the granted lease time has room for, see [Bounds].
	Grace time.Duration
	// Margin is what scheduling, killing and reaping may take. Default 500 ms.
	Margin time.Duration
	// DuplicateWait bounds for how long a registration waits for the key of a process that went before,
	// with the same UUID, to expire. Default: the lease time of that key and a second. Negative: not at all.
	// A key whose lease is renewed meanwhile is a live process's, and ends the wait at once.
	DuplicateWait time.Duration
	// NoHeal ends the registration with its first loss: the state is then stopped, and nothing is put again.
	NoHeal bool
	// Clock is the clock of the deadlines. Default [Now]; tests put a fake one here.
	Clock func() time.Duration
	// Metrics is told of renewals, losses and returns.
	Metrics Metrics
}

// check fills in the defaults, or says what cannot be meant.
func (o *LivenessOptions) check() error {
	const most = int64(maxTTL / time.Second)
	o.LeaseTTLSec = cmp.Or(o.LeaseTTLSec, DefaultLeaseTTLSec)
	if o.LeaseTTLSec < 1 || o.LeaseTTLSec > most {
		return fmt.Errorf("%w: lease ttl %d s: want 1 to %d", ErrInvalidOption, o.LeaseTTLSec, most)
	}
	if _, err := NewBounds(o.ttl(), o.Margin, o.Grace); err != nil {
		return err
	}
	o.Margin, o.Grace = cmp.Or(o.Margin, DefaultMargin), cmp.Or(o.Grace, DefaultGrace)
	o.Refresh = cmp.Or(o.Refresh, min(DefaultRefreshInterval, o.ttl()/3))
	if o.Refresh < 100*time.Millisecond || 2*o.Refresh >= o.ttl() {
		return fmt.Errorf("%w: refresh %v: want 100ms to less than half of the lease ttl, %v", ErrInvalidOption, o.Refresh, o.ttl())
	}
	if o.Clock == nil {
		o.Clock = Now
	}
	o.Logger = orDiscard(o.Logger)
	return nil
}

func (o *LivenessOptions) ttl() time.Duration { return time.Duration(o.LeaseTTLSec) * time.Second }
