package guard

import (
	"bytes"
	"encoding/json"
	"os"
	"sync"
	"time"
)

// outbox writes one JSON object a line into a pipe without ever making its caller wait: the other side may be
// frozen, and a full pipe must not hold up a deadline. What waits is bounded by what the caller has to say,
// which is a handful of small messages a second.
type outbox struct {
	file *os.File
	wake chan struct{}
	done chan struct{} // the writing goroutine has ended and closed the file

	mu     sync.Mutex
	queue  bytes.Buffer
	closed bool
	err    error
}

func newOutbox(file *os.File) *outbox {
	o := &outbox{file: file, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.write()
	return o
}

// put queues one message. Its error is that of an earlier write, or of the encoding.
func (o *outbox) put(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return o.err
	case o.closed:
		return os.ErrClosed
	}
	o.queue.Write(line)
	o.queue.WriteByte('\n')
	o.nudge()
	return nil
}

// close writes what is queued, for at most this long, and closes the pipe.
func (o *outbox) close(within time.Duration) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.nudge()
	// A deadline also ends a write that is under way. Pipes take deadlines; should one not, it is closed instead.
	if o.file.SetWriteDeadline(time.Now().Add(within)) != nil {
		_ = o.file.Close()
	}
	<-o.done
}

func (o *outbox) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// write is the goroutine: it takes all that is queued, writes it, and sleeps.
func (o *outbox) write() {
	defer close(o.done)
	defer o.file.Close()
	for range o.wake {
		o.mu.Lock()
		batch := bytes.Clone(o.queue.Bytes())
		o.queue.Reset()
		last := o.closed
		o.mu.Unlock()

		if _, err := o.file.Write(batch); err != nil {
			o.mu.Lock()
			o.err = err
			o.mu.Unlock()
			return
		}
		if last {
			return
		}
	}
}
