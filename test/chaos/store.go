//go:build linux

package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/internal/hold"
)

// What is done under tokens that are checked: a scribe wrote; its write was refused, because a newer one had been there.
const whatWrite, whatRefused what = "write", "refused"

// store is contenders whose wrapper and guard may stop together, which only the token helps against. In one office the holders write
// what checks their token: two may be alive at once, and what counts is that no write of the older one lands after one of the
// newer. In the other they run under conch fence, whose lock lets nobody in before the last one is gone.
type store struct {
	offices
	scribes, locked string
}

func newStore(_ context.Context, a *arena) (workload, error) {
	s := &store{scribes: "scribes", locked: "locked"}
	s.offices = offices{workload: "store", names: []string{s.scribes, s.locked}}
	for i := range 3 {
		for _, name := range s.names {
			p := a.wrapper("elect", name, i+2, "--ttl", "4s", "--kill-after", "1s")
			p.role = roleFenced
			if name == s.scribes {
				p.command(a.Self, scribeRole, a.ledgerPath(), a.scratch("scribes"))
			} else {
				p.command(append([]string{a.program("conch"), "fence", "--file", a.scratch("locked"), "--kill-after", "1s", "--"}, a.child()...)...)
				p.codes = append([]int{hold.CodeFenced}, p.codes...)
			}
			s.all = append(s.all, p)
		}
	}
	return s, nil
}

func (s *store) audit(events []event) []violation {
	return append(fenced(s.workload, holds(events, s.scribes)), exclusive(s.workload, holds(events, s.locked))...)
}

func (s *store) tally(events []event, numbers map[string]int) {
	s.offices.tally(events, numbers)
	for _, e := range holds(events, s.scribes) {
		switch e.What {
		case whatWrite:
			numbers["writes"]++
		case whatRefused:
			numbers["writes refused"]++
		}
	}
}

// fenced judges writes in the order in which they were accepted: none has a lower token than one before it, and none is refused
// unless somebody with a higher one has started.
func fenced(workload string, events []event) (found []violation) {
	var last event
	var highest uint64
	for _, e := range events {
		switch {
		case e.What == whatStart:
			highest = max(highest, e.Token)
		case e.What == whatWrite && e.Token < last.Token:
			found = append(found, violationf(workload, e.At, "%s: stale write: token %d, process %d writes after token %d", label(e), e.Token, e.Pid, last.Token))
		case e.What == whatRefused && e.Token >= highest:
			found = append(found, violationf(workload, e.At, "%s: token %d is refused, and nobody came with more than %d", label(e), e.Token, highest))
		case e.What == whatWrite:
			last = e
		}
	}
	return found
}

const (
	scribeRole = "scribe"
	// scribePause is how long a scribe thinks between two writes.
	scribePause = 100 * time.Millisecond
)

// scribe writes under its token, again and again: scribe LEDGER FILE. What it writes is a line in the ledger, while it has the lock
// of the fence. It ends by itself, when it is told to, or when it is refused.
func scribe(args []string) error {
	if len(args) != 2 {
		return errors.New("want LEDGER FILE")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, err := openWriter(args[0])
	if err != nil {
		return err
	}
	file, err := fence.NewFile(args[1])
	if err != nil {
		return err
	}
	if err := w.say(whatStart, ""); err != nil {
		return err
	}
	over := time.Now().Add(6*time.Second + 3*mannersOf(w.hold.Token).span) // mostly longer than its lease would last
	for time.Now().Before(over) && ctx.Err() == nil {
		err := file.Do(ctx, w.hold.Token, func(context.Context) error { return w.say(whatWrite, "") })
		var refused *fence.ErrFenced
		switch {
		case errors.As(err, &refused):
			return w.say(whatRefused, "")
		case err != nil && ctx.Err() == nil:
			return err
		}
		sleep(ctx, scribePause)
	}
	return w.say(whatStop, "")
}
