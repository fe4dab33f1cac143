package supervise

import (
	"log/slog"
	"syscall"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// event is something that happened. The driver fills in at and deadlines for every event.
type event struct {
	kind      eventKind
	at        hold.Instant   // when it was seen
	deadlines hold.Deadlines // of the hold, read after at; zero while there is none

	info      hold.Info      // evAcquired
	testament []byte         // evPlaced, evAcquired
	guard     guard.Event    // evGuard
	signal    syscall.Signal // evSignal
	err       error          // why, or who asks; evAcquired: it is lost already; evSwept, evReleased: nil if it succeeded
}

type eventKind int

const (
	evTick        eventKind = iota // the time that wake asked for has come
	evPlaced                       // a key of ours stands in the queue
	evAcquired                     // Acquire returned a hold
	evNotAcquired                  // Acquire returned an error
	evRenewed                      // the deadlines of the hold may have risen
	evLost                         // the hold says that it is lost
	evEvicted                      // an operator asks the holder to leave
	evGuard                        // the guard said something
	evGuardBroken                  // the guard does not take requests any more
	evSignal                       // this process got a signal
	evSwept                        // Sweep returned
	evReleased                     // one attempt to release returned
)

// action is something that the driver is to do, in the order in which the machine asks for it.
type action struct {
	kind    actionKind
	request guard.Request // actSend
	end     hold.End      // actRelease
	line    line          // actLog
	outcome Outcome       // actFinish
}

type actionKind int

const (
	actSend          actionKind = iota // pass request to the guard
	actCancelAcquire                   // end the context of Acquire
	actRelease                         // one bounded attempt to release
	actStopRelease                     // end the attempt that is under way
	actKillGuard                       // the guard is of no use any more
	actSweep                           // kill what is left, and prove that nothing is
	actTakeTerminal                    // the child has no use for the terminal any more
	actLog                             // one line
	actFinish                          // the outcome; the last action of all
)

// line is one line of the log.
type line struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}
