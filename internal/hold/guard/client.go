package guard

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// ErrLost is returned when the guard is dead, or has been killed.
var ErrLost = errors.New("guard: lost")

const (
	byeFlush  = time.Second      // how long Close tries to say good-bye
	byeWithin = 10 * time.Second // how long Close waits for the guard to end before it kills it
)

// Options say what a guard works with.
type Options struct {
	// Path of the guard program, as Locate finds it. Empty: this executable, which has to call Main when
	// IsRole says so.
	Path string
	// Release is the program to execute for testaments when this process dies, opened for reading. Nil: none,
	// and testaments are dropped. It may be closed when Start has returned.
	Release *os.File
	// Settings are handed to the release program, and to nobody else, in memory that cannot be changed.
	Settings []byte
	// Kept is a file that is kept open until nothing of any run is left: by the guard, whatever becomes of this process, and by
	// the children, which have it as KeptFD. So a lock on it (flock(2)) lasts as long as any of them does. Nil: none. It
	// stays this process's to close.
	Kept *os.File
	// Stdin, Stdout, Stderr are what children get. Nil: this process's own.
	Stdin, Stdout, Stderr *os.File
	// Env is the environment of the guard and of the release program. Children get their Spec's. Nil: empty.
	Env []string
	// Clock is the clock of all instants, for InProcess on systems other than Linux. Nil: monotonic, counted
	// from this call. On Linux it is always CLOCK_BOOTTIME.
	Clock func() hold.Instant
}

// Client is the wrapper's side of a guard. Its methods may be called from several goroutines.
type Client struct {
	peer   peer
	out    *outbox
	in     *os.File
	events chan Event

	closing chan struct{} // nobody reads events any more
	ended   chan struct{} // the guard is no more, and was reaped
	how     string        // it ended; set before ended is closed
	done    chan struct{} // the reading goroutine has ended
	once    sync.Once
}

// peer is the guard as something that can be ended: a process, or a loop in this one.
type peer interface {
	kill()                       // end it at once; what it guarded dies or comes to this process
	wait() string                // until it has ended; says how
	sweep(context.Context) error // end what came to this process, after wait
	reap()                       // take ended orphans away
}

// newClient takes the wrapper's ends of both pipes.
func newClient(p peer, requests, events *os.File) *Client {
	c := &Client{
		peer:    p,
		out:     newOutbox(requests),
		in:      events,
		events:  make(chan Event, 16),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		done:    make(chan struct{}),
	}
	// Apart from reading: Sweep must not depend on somebody taking events.
	go func() {
		c.how = p.wait()
		close(c.ended)
	}()
	go c.read()
	return c
}

// Events yields what the guard says, in order. The last one is KindLost when the guard ends without Close;
// then the channel is closed.
func (c *Client) Events() <-chan Event { return c.events }

// Send asks the guard for something. It never waits for the guard: a request to a frozen one stays in the pipe.
func (c *Client) Send(q Request) error {
	if c.out.put(q) != nil {
		return ErrLost
	}
	return nil
}

// Kill ends the guard with SIGKILL. Its direct children die of it; the rest comes to this process: see Sweep.
func (c *Client) Kill() { c.peer.kill() }

// Sweep ends everything that is left when the guard is dead, and returns nil when the kernel says that this process
// has no child any more (or only those that it had before Start). It waits for the guard's own end first. An
// error means that something is left: nothing may be released then.
func (c *Client) Sweep(ctx context.Context) error {
	select {
	case <-c.ended:
		return c.peer.sweep(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reap takes away what has ended and came to this process though it is none of the guard's: a wrapper that is the first
// process of a container calls it on SIGCHLD. It touches neither the guard nor children from before Start.
func (c *Client) Reap() { c.peer.reap() }

// Close says that the wrapper is done and waits until the guard has ended, having killed what still ran. Nothing is
// released. A guard that does not end within a few seconds is killed: ErrLost. Close may be called again.
func (c *Client) Close() error {
	killed := false
	c.once.Do(func() {
		close(c.closing)
		_ = c.out.put(Request{Op: OpBye})
		c.out.close(byeFlush)
		patience := time.AfterFunc(byeWithin, c.peer.kill)
		<-c.done
		killed = !patience.Stop()
	})
	<-c.done
	if killed {
		return ErrLost
	}
	return nil
}

// read is the goroutine: it passes events on until the guard's pipe ends.
func (c *Client) read() {
	defer close(c.done)
	defer close(c.events)
	lost := Event{Kind: KindLost}
	decoder := json.NewDecoder(c.in)
	for {
		var e Event
		if decoder.Decode(&e) != nil {
			break
		}
		if e.Kind == KindLost {
			lost.Reason = e.Reason
			continue
		}
		c.deliver(e)
	}
	_ = c.in.Close()
	<-c.ended
	if lost.Reason == "" {
		lost.Reason = c.how
	}
	c.deliver(lost)
}

// deliver waits for the reader of events, unless Close was called.
func (c *Client) deliver(e Event) {
	select {
	case c.events <- e:
	case <-c.closing:
	}
}

// pipes makes the two pipes of a guard.
func pipes() (p struct{ guardIn, requests, events, guardOut *os.File }, err error) {
	if p.guardIn, p.requests, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.events, p.guardOut, err = os.Pipe(); err != nil {
		return p, errors.Join(err, p.guardIn.Close(), p.requests.Close())
	}
	return p, nil
}

// stdio is what children get.
func (o Options) stdio() [3]*os.File {
	files := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i, f := range []*os.File{o.Stdin, o.Stdout, o.Stderr} {
		if f != nil {
			files[i] = f
		}
	}
	return files
}
