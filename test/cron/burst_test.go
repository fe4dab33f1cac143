package cron

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/cron/crowd"
)

const (
	// many is how many jobs are due at the same second.
	many = 1000
	// workers is how many the bare loop has: as many as three daemons have starts under way.
	workers = 48
)

// A thousand jobs that are due in the same second run once each, and no daemon is lost over it: the claims and the starts of a burst leave
// room for what keeps the sessions. What the wait for the start comes to is held against a loop that starts the same
// commands and does nothing else.
func TestABurst(t *testing.T) {
	c := etcdtest.Cluster(t, 1)
	l := newLedger(newFleet(t, c.Endpoints()...))
	daemons := []*daemonProcess{l.daemon("a"), l.daemon("b"), l.daemon("c")}
	script := crowd.Script(l.path)
	bare, err := crowd.Bare(many, workers, crowd.Discarded(script))
	l.must(err)

	due := time.Now().Add(8 * time.Second).Truncate(time.Second)
	l.crowd(many, fmt.Sprintf(`{"schedule":"@at %s","script":%q}`, due.UTC().Format(time.RFC3339), script))
	if late := time.Since(due); late > 0 {
		t.Fatalf("the jobs were not there before they were due, but %v later", late)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	late, err := crowd.Lateness(ctx, l.cli, many, due, 1)
	if err != nil {
		t.Fatalf("%v; %s", err, l.logs())
	}
	l.lives(daemons...)
	for _, d := range daemons {
		if strings.Contains(d.Stderr(), "session lost") {
			t.Errorf("%s lost its session: %s", d.host, d.Stderr())
		}
		l.stop(d)
	}
	starts := l.entries()
	for name, of := range starts {
		if len(of) != 1 {
			t.Errorf("%s was started %d times", name, len(of))
		}
	}
	if len(starts) != many {
		t.Errorf("%d jobs were started, want %d", len(starts), many)
	}
	l.empty()
	l.nothingOpen()
	ours, theirs := crowd.Percentile(late, 99), crowd.Percentile(bare, 99)
	ratio := float64(ours) / float64(theirs)
	t.Logf("lateness of the fork of %d jobs: median %v, p99 %v; of a bare loop with %d workers: %v, %v; ratio of p99 %.2f",
		many, crowd.Percentile(late, 50), ours, workers, crowd.Percentile(bare, 50), theirs, ratio)
	// What it comes to depends on what else the machine does; a claim that waits for another one, or a start for a timer, is far beyond.
	if ratio > 10 {
		t.Errorf("p99 is %.1f times that of a bare loop", ratio)
	}
}

// crowd puts many jobs.
func (l *ledger) crowd(n int, spec string) {
	l.Helper()
	spec = strings.TrimSuffix(spec, "}") + fmt.Sprintf(`,"env":{"MARK":%q}}`, l.mark)
	l.must(crowd.Put(l.Context(), l.cli, n, spec))
}
