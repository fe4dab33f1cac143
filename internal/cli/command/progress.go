package command

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
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
	manager *cli.Notifier

	mu    sync.Mutex
	said  time.Time   // of the last line; zero: none yet
	tell  func()      // the line that is due
	later *time.Timer // pending line; nil: none
	over  bool

	settling coord.Record // whose end is waited for; zero: there was none
	settled  time.Time    // when that would be over
	of       string       // whose hold it was
}

// waiting takes in a change of who holds an office, or of the place behind. It is called by the campaigning goroutine
// and does not block.
func (p *progress) waiting(w coord.Waiting) {
	holder, _ := hold.DecodeHolder([]byte(w.Leader.Identity))
	p.change(w, func() {
		p.log.Info("waiting", "name", p.name, "position", w.Position, "holder", holder.String(), "rev", w.Leader.Token, "dur", p.dur())
		p.manager.Status(fmt.Sprintf("waiting in place %d, held by %s", w.Position, holder))
	})
}

// queueing takes in a change of the place before one of max slots: there is no one holder to wait for.
func (p *progress) queueing(max int) func(coord.Waiting) {
	return func(w coord.Waiting) {
		p.change(w, func() {
			p.log.Info("waiting", "name", p.name, "position", w.Position, "max", max, "dur", p.dur())
			p.manager.Status(fmt.Sprintf("waiting in place %d for one of %d slots", w.Position, max))
		})
	}
}

// spreading takes in a change of who on this host comes first.
func (p *progress) spreading(w coord.Waiting) {
	holder, _ := hold.DecodeHolder([]byte(w.Leader.Identity))
	p.change(w, func() {
		p.log.Info("waiting for this host's other contenders", "name", p.name, "position", w.Position, "holder", holder.String(), "dur", p.dur())
		p.manager.Status(fmt.Sprintf("waiting in place %d of this host, behind %s", w.Position, holder))
	})
}

// dur is how long it has been waited.
func (p *progress) dur() time.Duration { return time.Since(p.began).Round(time.Millisecond) }

// change takes in a change, and tells it, or has it told when it is time. Whose end is waited for is told at once, and
// once.
func (p *progress) change(w coord.Waiting, tell func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.Settling > 0 {
		p.cancel()
		p.settle(w)
		return
	}
	p.tell = tell
	if left := progressEvery - time.Since(p.said); !p.said.IsZero() && left > 0 {
		if p.later == nil {
			p.later = time.AfterFunc(left, p.due)
		}
		return
	}
	p.say()
}

func (p *progress) settle(w coord.Waiting) {
	told := !p.settled.IsZero() && w.Record == p.settling
	p.settled = time.Now().Add(w.Settling)
	if told {
		return
	}
	holder, _ := hold.DecodeHolder([]byte(w.Record.Holder))
	p.settling, p.of = w.Record, holder.String()
	p.log.Info("settling", "name", p.name, "at_most", w.Settling.Round(time.Millisecond), "holder", p.of,
		"reason", "the last hold did not say that its child is gone")
	p.manager.Status("waiting out the hold of " + p.of)
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
	p.tell()
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
