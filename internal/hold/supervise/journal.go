package supervise

import (
	"context"
	"log/slog"
	"time"
)

// journalRoom is how many lines may wait for a reader of the log.
const journalRoom = 256

// journal writes lines in order and never blocks: a full pipe behind the log must not keep the loop from
// passing renewals on. Lines that find no room are dropped, and counted in a last line.
type journal struct {
	logger *slog.Logger
	queue  chan line
	done   chan struct{}
	missed int
}

func newJournal(logger *slog.Logger) *journal {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	j := &journal{logger: logger, queue: make(chan line, journalRoom), done: make(chan struct{})}
	go j.work()
	return j
}

func (j *journal) work() {
	defer close(j.done)
	for l := range j.queue {
		j.logger.LogAttrs(context.Background(), l.level, l.text, l.attrs...)
	}
}

func (j *journal) say(l line) {
	select {
	case j.queue <- l:
	default:
		j.missed++
	}
}

// close waits until everything was written, but not for a log that nobody reads.
func (j *journal) close() {
	if j.missed > 0 {
		last := line{level: slog.LevelWarn, text: "lines were dropped", attrs: []slog.Attr{slog.Int("lines", j.missed)}}
		select {
		case j.queue <- last:
		default:
		}
	}
	close(j.queue)
	select {
	case <-j.done:
	case <-time.After(closeWithin):
	}
}
