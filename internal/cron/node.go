package cron

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/cron/store"
)

const (
	// slice is the longest sleep: the wall clock may be set at any time.
	slice = 15 * time.Second
	// cardEvery is how often a node writes its card, from which its peers know its clock.
	cardEvery = 10 * time.Second
	// claimsMost is how many transactions are under way at a time; startsMost how many starts are claimed and have no process
	// yet: what cannot be started soon is better left to a peer. Once there are so many, none is claimed until there are startsAgain: then
	// claims go to etcd together, and those that are left keep the guard busy meanwhile.
	claimsMost  = 32
	startsMost  = 48
	startsAgain = 16
	// hearMost is how much is taken in between two looks.
	hearMost = 64
	// writesMost is how many results are written at a time; writeWithin is how long one waits for that while something is to be started.
	writesMost  = 32
	writeWithin = time.Second
	// resultsFor is how long results are still tried to be written when all has ended.
	resultsFor = 15 * time.Second
	// goodbye bounds the end of the registration.
	goodbye = 5 * time.Second
)

// node is one daemon. Its fields change in loop only (C4).
type node struct {
	Options
	store *store.Store
	zones *schedule.Zones
	calls chan func()   // what is to be done in loop
	done  chan struct{} // closed when loop has ended: nothing is done any more
	work  sync.WaitGroup

	// What is known of etcd (follow.go).
	jobs   map[string]*entry
	runs   map[string]bool // run markers, by run id
	areas  map[string]*area
	peers  map[string]*peer
	drains map[string]bool
	kills  map[string]record.Kill // by run id
	pause  record.Stop
	// pauseRev is the mod revision of pause; 0: there is none.
	pauseRev int64

	// What is to be done (loop.go).
	agenda agenda
	ready  []*entry
	claims int  // transactions under way
	asking int  // of these, those that would start something
	starts int  // starts without a process, those that are asked for included
	crowd  bool // there were startsMost of these, and are more than startsAgain
	busy   bool // what Busy was told last
	lazy   map[*entry]struct{}
	// stirred are the jobs of which something was learned since the last look.
	stirred []*entry
	// unwritten are results that wait to be written, writes is how many are being written, results both, until they are in etcd.
	unwritten []unwritten
	writes    int
	results   int
	writeIn   time.Duration // how long the first of unwritten still waits for what is to be started; 0: it does not

	// What runs (running.go).
	running map[string]*running // by run id, until the result is written
	stuck   map[string]bool     // what could not be ended: its record stays open for as long as this process lives
	hard    context.Context     // ends when results are waited for no longer
	giveUp  context.CancelFunc

	// What the node is (presence.go).
	live     *coord.HostLiveness
	proof    *coord.Proof // nil: not proven
	since    time.Time    // of the first registration
	stopping bool
	unfit    string // why it claims nothing; empty: it does
	skewed   bool
	cards    chan record.Card // the latest card, to be written
	nonces   uint64
	seed     string
}

// Run is one node, from its registration until ctx has ended and what it runs has, too. An error is that it could not begin.
func Run(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	zones, err := schedule.OpenZones()
	if err != nil {
		return err
	}
	n := &node{
		Options: o, zones: zones, store: store.New(o.Client, o.Mono), calls: make(chan func()), done: make(chan struct{}),
		jobs: map[string]*entry{}, runs: map[string]bool{}, peers: map[string]*peer{}, drains: map[string]bool{}, kills: map[string]record.Kill{},
		lazy: map[*entry]struct{}{}, running: map[string]*running{}, stuck: map[string]bool{}, cards: make(chan record.Card, 1), since: o.Now(), seed: newSeed(),
	}
	if !o.ReadOnly {
		if n.live, err = o.register(ctx); err != nil {
			return fmt.Errorf("register node: %w", err)
		}
	}
	return n.run(ctx)
}

func (n *node) run(ctx context.Context) error {
	// What is done for the node outlives the wish to end: runs are finished and results are written after it.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.hard, n.giveUp = context.WithCancel(inner)
	defer n.giveUp()
	failed := n.followAll(inner)
	if n.live != nil {
		n.work.Go(func() { n.prove(inner) })
		n.work.Go(func() { n.publish(inner) })
	}
	err := n.loop(ctx, failed)
	stop()
	close(n.done)
	n.work.Wait()
	if n.live != nil {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		if left := n.live.Stop(bye); left != nil {
			n.Logger.Warn("registration left to its TTL", slog.String("reason", left.Error()))
		}
	}
	return err
}

// post has something done in loop. It waits until it is taken, and does nothing once loop has ended.
func (n *node) post(do func()) {
	select {
	case n.calls <- do:
	case <-n.done:
	}
}
