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
	queue  chan line // nil: nothing was said yet
	done   chan struct{}
	missed int
}

func newJournal(logger *slog.Logger) *journal {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &journal{logger: logger, done: make(chan struct{})}
}

func (j *journal) work() {
	defer close(j.done)
	for l := range j.queue {
		j.logger.LogAttrs(context.Background(), l.level, l.text, l.attrs...)
	}
}

// say begins with the first line that somebody wants: most of many runs of one process have none, and the room is large.
func (j *journal) say(l line) {
	if !j.logger.Enabled(context.Background(), l.level) {
		return
	}
	if j.queue == nil {
		j.queue = make(chan line, journalRoom)
		go j.work()
	}
	select {
	case j.queue <- l:
	default:
		j.missed++
	}
}

// close waits until everything was written, but not for a log that nobody reads.
func (j *journal) close() {
	if j.queue == nil {
		return
	}
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
