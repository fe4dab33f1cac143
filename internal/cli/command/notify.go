package command

import (
	"time"
)

const (
	// notifyRoom is how many messages may wait for a service manager that is busy; further ones are dropped.
	notifyRoom = 64
	// notifyWithin is how long the last ones are waited for at the end.
	notifyWithin = time.Second
)

// notifier tells the service manager how things are, and never waits for it. nil tells nobody.
type notifier struct {
	queue chan string
	done  chan struct{}
	every time.Duration // between two beats
}

// notifier is nil where there is no service manager.
func (c *call) notifier() *notifier {
	if c.env.Notify == nil {
		return nil
	}
	// Half of what is allowed, as sd_watchdog_enabled(3) recommends.
	n := &notifier{queue: make(chan string, notifyRoom), done: make(chan struct{}), every: c.env.Watchdog / 2}
	go func() {
		defer close(n.done)
		for state := range n.queue {
			c.env.Notify(state)
		}
	}()
	return n
}

func (n *notifier) say(state string) {
	if n == nil {
		return
	}
	select {
	case n.queue <- state:
	default:
	}
}

func (n *notifier) status(text string) { n.say("STATUS=" + text) }
func (n *notifier) ready(text string)  { n.say("READY=1\nSTATUS=" + text) }
func (n *notifier) beat()              { n.say("WATCHDOG=1") }

// close tells what is still to be told.
func (n *notifier) close() {
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

// beatEvery is 0 where nobody listens for it.
func (n *notifier) beatEvery() time.Duration {
	if n == nil {
		return 0
	}
	return n.every
}
