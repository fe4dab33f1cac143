package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

const (
	// pauseLeast and pauseMost bound the pause before the next round of --restart.
	pauseLeast = time.Second
	pauseMost  = 30 * time.Second
	// goodAfter is how long a hold has to last for the pauses to begin anew.
	goodAfter = time.Minute
)

// pauses gives one pause after the other, with decorrelated jitter: each is drawn between the least and three times the
// one before (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). So a fleet whose etcd comes
// back does not come back at one moment.
type pauses struct{ last time.Duration }

func (p *pauses) next() time.Duration {
	p.last = max(p.last, pauseLeast)
	p.last = min(pauseMost, pauseLeast+rand.N(3*p.last-pauseLeast+1))
	return p.last
}

// over takes in how a round ended, and says whether it was the last one. A signal ends all, and so does a Ctrl-C, which comes
// to the child alone where that has the terminal. Where something of the child is alive, or on-lose has not done what a
// release needs, another round on this host would be as wrong as on any other.
func (p *pauses) over(out supervise.Outcome) bool {
	if out.Status.Held >= goodAfter {
		p.last = 0
	}
	return out.Signalled || out.Interrupted || !out.Clean || out.Status.Outcome == hold.ResultHookFailed
}

// rest waits for the next round. A signal that asks to end comes back as an error.
func (p *pauses) rest(ctx context.Context, signals <-chan os.Signal, log *slog.Logger, manager *cli.Notifier, name string, out supervise.Outcome) error {
	pause := p.next()
	var asked hold.Eviction
	if errors.As(out.Err, &asked) { // whoever asked may want it to stay away for longer
		pause = max(pause, asked.Cooldown)
	}
	log.Info("restarting", "name", name, "in", pause.Round(time.Millisecond), "reason", reason(out))
	manager.Status("pausing before the next campaign: " + reason(out))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var beats <-chan time.Time // nil: never
	if every := manager.BeatEvery(); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		beats = ticker.C
	}
	for {
		select {
		case <-timer.C:
			return nil
		case <-beats:
			manager.Beat()
		case <-ctx.Done():
			return signalled(syscall.SIGTERM)
		case sig := <-signals:
			if supervise.AsksToEnd(sig) {
				return signalled(sig.(syscall.Signal))
			}
		}
	}
}

// signalled is a signal that came between two rounds.
type signalled syscall.Signal

func (s signalled) Error() string {
	return fmt.Sprintf("signal %v between two rounds", syscall.Signal(s))
}

// status is how a run ended by a signal between two rounds: nothing is held and nothing runs.
func (s signalled) status() hold.Status {
	return hold.Status{Outcome: hold.ResultSignalled, Code: hold.SignalCode(int(s)), Reason: s.Error()}
}

// reason says in a few words how a round ended.
func reason(out supervise.Outcome) string {
	switch {
	case out.Err != nil:
		return out.Err.Error()
	case out.Status.Outcome == hold.ResultChildSignal:
		return "ended by " + out.Status.Reason
	}
	return fmt.Sprintf("exited %d", out.Status.Code)
}
