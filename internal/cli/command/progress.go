package command

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// progressEvery is the least time between two lines about the place in the queue.
const progressEvery = 10 * time.Second

// progress tells what a campaign waits for: at once, then when that has changed, but not too often. A change
// that comes too early is told when the time is over, as it is then.
type progress struct {
	log     *slog.Logger
	name    string
	began   time.Time
	manager *notifier
	max     int // of a semaphore; 0: of an office

	mu    sync.Mutex
	said  time.Time // of the last line; zero: none yet
	last  coord.Waiting
	later *time.Timer // pending line; nil: none
	over  bool

	settled time.Time // when settling would have been over; zero: there was none
	of      string    // whose hold was settled
}

// waiting takes in a change. It is called by the campaigning goroutine and does not block.
func (p *progress) waiting(w coord.Waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.Settling > 0 {
		p.cancel()
		holder, _ := hold.DecodeHolder([]byte(w.Record.Holder))
		p.settled, p.of = time.Now().Add(w.Settling), holder.String()
		p.log.Info("settling", "name", p.name, "at_most", w.Settling.Round(time.Millisecond), "holder", holder.String(),
			"reason", "the last hold did not say that its child is gone")
		p.manager.status("waiting out the hold of " + holder.String())
		return
	}
	p.last = w
	if left := progressEvery - time.Since(p.said); !p.said.IsZero() && left > 0 {
		if p.later == nil {
			p.later = time.AfterFunc(left, p.due)
		}
		return
	}
	p.say()
}

// queueing takes in a change of who waits for a slot; it is for semaphores, where there is no one holder to wait for.
func (p *progress) queueing(max int) func(coord.Waiting) {
	return func(w coord.Waiting) {
		p.mu.Lock()
		p.max = max
		p.mu.Unlock()
		p.waiting(w)
	}
}

// spreading takes in that somebody of this host comes first.
func (p *progress) spreading(w coord.Waiting) {
	holder, _ := hold.DecodeHolder([]byte(w.Leader.Identity))
	p.log.Info("waiting for this host's other contenders", "name", p.name, "position", w.Position, "holder", holder.String())
	p.manager.status("waiting for " + holder.String() + " on this host")
}

// due tells what was held back.
func (p *progress) due() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.later != nil && !p.over {
		p.later = nil
		p.say()
	}
}

func (p *progress) say() {
	p.said = time.Now()
	if p.max > 0 {
		p.log.Info("waiting", "name", p.name, "position", p.last.Position, "max", p.max, "dur", time.Since(p.began).Round(time.Millisecond))
		p.manager.status(fmt.Sprintf("waiting in place %d for one of %d slots", p.last.Position, p.max))
		return
	}
	holder, _ := hold.DecodeHolder([]byte(p.last.Leader.Identity))
	p.log.Info("waiting", "name", p.name, "position", p.last.Position, "holder", holder.String(),
		"rev", p.last.Leader.Token, "dur", time.Since(p.began).Round(time.Millisecond))
	p.manager.status(fmt.Sprintf("waiting in place %d, held by %s", p.last.Position, holder))
}

// unsettled says, for whoever gave up meanwhile, that and for how long an earlier hold had to be waited out.
func (p *progress) unsettled() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := time.Until(p.settled)
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf(": the hold of %s ended without a word, and is waited out for up to %v more; "+
		"each attempt begins anew, so a longer --wait is needed", p.of, left.Round(100*time.Millisecond))
}

func (p *progress) cancel() {
	if p.later != nil {
		p.later.Stop()
		p.later = nil
	}
}

// stop ends it: nothing is told any more.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.cancel()
}
