package cli

import (
	"time"
)

const (
	// notifyRoom is how many messages may wait for a service manager that is busy; further ones are dropped.
	notifyRoom = 64
	// notifyWithin is how long the last ones are waited for at the end.
	notifyWithin = time.Second
)

// Notifier tells the service manager how things are, and never waits for it. nil tells nobody.
type Notifier struct {
	queue chan string
	done  chan struct{}
	every time.Duration // between two beats
}

// NewNotifier is nil where there is no service manager. It has to be closed.
func NewNotifier(env Env) *Notifier {
	if env.Notify == nil {
		return nil
	}
	// Half of what is allowed, as sd_watchdog_enabled(3) recommends.
	n := &Notifier{queue: make(chan string, notifyRoom), done: make(chan struct{}), every: env.Watchdog / 2}
	go func() {
		defer close(n.done)
		for state := range n.queue {
			env.Notify(state)
		}
	}()
	return n
}

func (n *Notifier) say(state string) {
	if n == nil {
		return
	}
	select {
	case n.queue <- state:
	default:
	}
}

// Status says in a line how things are.
func (n *Notifier) Status(text string) { n.say("STATUS=" + text) }

// Ready says that what was to be started is there.
func (n *Notifier) Ready(text string) { n.say("READY=1\nSTATUS=" + text) }

// Beat says that the one loop that everything depends on lives.
func (n *Notifier) Beat() { n.say("WATCHDOG=1") }

// Close tells what is still to be told.
func (n *Notifier) Close() {
	if n == nil {
		return
	}
	n.say("STOPPING=1")
	close(n.queue)
	select {
	case <-n.done:
	case <-time.After(notifyWithin):
	}
}

// BeatEvery is how often to call Beat: 0 where nobody listens for it.
func (n *Notifier) BeatEvery() time.Duration {
	if n == nil {
		return 0
	}
	return n.every
}
