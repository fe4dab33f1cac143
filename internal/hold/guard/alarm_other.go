//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package guard

import (
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// alarm rings at an instant of the wrapper's clock.
type alarm struct {
	rang  chan struct{} // one value may stand for many
	clock func() hold.Instant
	timer *time.Timer
}

func newAlarm(clock func() hold.Instant) (*alarm, error) {
	return &alarm{rang: make(chan struct{}, 1), clock: clock}, nil
}

// set makes the alarm ring at an instant, and no more at the one set before; 0 is never.
func (a *alarm) set(at hold.Instant) {
	a.close()
	if at == 0 {
		return
	}
	a.timer = time.AfterFunc(at-a.clock(), func() {
		select {
		case a.rang <- struct{}{}:
		default:
		}
	})
}

func (a *alarm) close() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
