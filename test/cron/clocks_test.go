package cron

import (
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/test/ticks"
)

// Three hosts whose clocks are six seconds apart run each tick once: the claim outlives the run, and a node that is behind finds
// it when its own clock comes to the tick.
func TestClocksThatDifferRunEachTickOnce(t *testing.T) {
	l := newLedger(one(t))
	daemons := []*daemonProcess{
		l.skewed("slow", -3*time.Second), l.skewed("right", 0), l.skewed("fast", 3*time.Second),
	}
	// The fast one comes to a new job when another has begun with it, and for its clock several ticks are due at once: they are
	// not too late, since the deadline is longer than the clocks are apart, and not in each other's way.
	l.add("j", "true", `{"schedule":"@every 2s","start_deadline":"10s","overlap":"allow"}`)
	l.add("other", "true", `{"schedule":"*/2 * * * * *","seconds":true,"tz":"America/New_York","start_deadline":"10s","overlap":"allow"}`)
	first := l.next("j", 0).Tick
	until := first + 20
	for _, job := range []string{"j", "other"} {
		l.through(job, until+4)
	}
	l.lives(daemons...)
	for _, d := range daemons {
		l.stop(d)
	}
	for _, job := range []string{"j", "other"} {
		kinds := l.audit(job, 2)
		for _, r := range l.results(job) {
			if r.Status != record.Success && r.Tick <= until {
				t.Errorf("tick %d: %s %s", r.Tick, r.Status, r.Reason)
			}
		}
		t.Logf("%s: %s", job, ticks.Tally(kinds))
	}
	l.empty()
	l.nothingOpen()
}
