package cli

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"time"
)

// sinkLines is how many lines may wait for whoever reads stderr.
const sinkLines = 256

// Sink is a writer that never blocks and never fails: what is written waits in a bounded queue, and a
// goroutine of its own passes it on. A reader that is slow or gone costs lines, and nothing else.
type Sink struct {
	w    io.Writer
	done chan struct{} // the goroutine has ended: everything was passed on

	mu      sync.Mutex
	lines   chan []byte
	closed  bool
	dropped int // lines that found no room
}

// NewSink makes a sink before w. Close ends it.
func NewSink(w io.Writer) *Sink {
	s := &Sink{w: w, done: make(chan struct{}), lines: make(chan []byte, sinkLines)}
	go s.pass()
	return s
}

// pass writes what is queued until the queue is closed. A write that fails is a line that nobody reads.
func (s *Sink) pass() {
	defer close(s.done)
	for line := range s.lines {
		_, _ = s.w.Write(line)
		if n := s.takeDropped(); n > 0 {
			format := "text"
			if bytes.HasPrefix(line, []byte("{")) { // what was passed on is JSON, and so is this
				format = logJSON
			}
			NewLogger(s.w, false, format).Warn("lines dropped: stderr was not read", "count", n)
		}
	}
}

func (s *Sink) takeDropped() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.dropped
	s.dropped = 0
	return n
}

// Write queues one line, or drops it. It always reports success.
func (s *Sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return len(line), nil
	}
	select {
	case s.lines <- slices.Clone(line):
	default:
		s.dropped++
	}
	return len(line), nil
}

// Close passes on what is queued and returns when that is done, or when it took too long; then the rest is
// lost, and false is returned. What is written after Close is dropped.
func (s *Sink) Close(within time.Duration) bool {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.lines)
	}
	s.mu.Unlock()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-s.done:
		return true
	case <-late.C:
		return false
	}
}
