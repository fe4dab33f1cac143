package locktest

import (
	"cmp"
	"context"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-coord/coord/coordination"
)

// Options are those of a run. The zero value is what Run uses.
type Options struct {
	// TTL is that of leases which are left to run out: as short as the store can do. Default 250 ms. A store that does
	// not go below a second makes the run slower, not different.
	TTL time.Duration
	// Bubble runs each test in a bubble of fake time (testing/synctest). The store has to live inside.
	Bubble bool
	// Clients is how many goroutines the history has. Default 8.
	Clients int
	// Operations is how many calls they make together. Default 1000.
	Operations int
	// Keys is how many keys these are about. Default 8.
	Keys int
	// Patience bounds the search for an order of the history, for each key. Default 1 min.
	Patience time.Duration
}

// Store is a Locker, and what a test can do to what stands behind it. Only Locker is needed; what is missing is not
// tried.
type Store struct {
	Locker coordination.Locker
	// Peer makes another Locker of the same store, as another process has one. Default: Locker itself.
	Peer func() coordination.Locker
	// Slow makes each answer come d later than it does, until restore.
	Slow func(d time.Duration) (restore func())
	// Silence stops the store as SIGSTOP does: nothing is done and nobody is answered, until restore.
	Silence func() (restore func())
	// LoseReply has the next request that can change a lock carried out, and its answer lost.
	LoseReply func()
	// Trouble does to the store what can happen to one until ctx ends, during the history. Calls may fail from it.
	Trouble func(ctx context.Context)
}

// Run checks the Lockers that newLocker makes, each with a store of its own or all with the same.
func Run(t *testing.T, newLocker func(t *testing.T) coordination.Locker) {
	t.Helper()
	RunWith(t, Options{}, func(t *testing.T) Store { return Store{Locker: newLocker(t)} })
}

// RunWith is Run, of stores that can be hurt. It returns when all of it is done. newStore is called by each test for
// itself; what it starts is to be ended by t.Cleanup.
func RunWith(t *testing.T, o Options, newStore func(t *testing.T) Store) {
	t.Helper()
	o = o.withDefaults()
	// The group returns when the tests in it have, so that what the caller defers comes after them.
	t.Run("contract", func(t *testing.T) {
		for _, r := range rows() {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				o.play(t, r, newStore)
			})
		}
	})
}

// History is the last row of RunWith alone: many clients, few keys, and an order in which all that they were told is right.
func History(t *testing.T, o Options, newStore func(t *testing.T) Store) {
	t.Helper()
	all := rows()
	o.withDefaults().play(t, all[len(all)-1], newStore)
}

// play checks one row, in real time or in a bubble.
func (o Options) play(t *testing.T, r row, newStore func(t *testing.T) Store) {
	check := func(t *testing.T) { r.check(o.trial(t, newStore(t))) }
	if o.Bubble {
		synctest.Test(t, check)
	} else {
		check(t)
	}
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, 250*time.Millisecond)
	o.Clients = cmp.Or(o.Clients, 8)
	o.Operations = cmp.Or(o.Operations, 1000)
	o.Keys = cmp.Or(o.Keys, 8)
	o.Patience = cmp.Or(o.Patience, time.Minute)
	return o
}

// tester is what the rows use of a testing.T: the tests of this package put a recorder here, to see that a broken Locker
// is found.
type tester interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// trial is one row being checked.
type trial struct {
	tester
	Options
	Store
	key string // of this row alone
}

func (o Options) trial(t tester, s Store) *trial {
	if s.Peer == nil {
		s.Peer = func() coordination.Locker { return s.Locker }
	}
	return &trial{tester: t, Options: o, Store: s, key: "locktest-" + rand.Text()}
}

// row is one line of the contract.
type row struct {
	name  string
	check func(*trial)
}

// rows are all of them.
func rows() []row {
	return []row{
		{"a free key is granted", (*trial).granted},
		{"a held key is refused, to the same owner too", (*trial).refusedWhileHeld},
		{"of many who ask at once one is granted", (*trial).oneOfMany},
		{"keys are told apart byte for byte", (*trial).distinctKeys},
		{"what makes no sense is an invalid lease", (*trial).invalid},
		{"released, a key is granted again with a higher token", (*trial).tokensRise},
		{"expired, a key is granted again with a higher token", (*trial).expires},
		{"a renewal keeps the token and lasts", (*trial).renews},
		{"a renewal may have another ttl", (*trial).renewsForAnotherTime},
		{"a lease that is over is not renewed", (*trial).doesNotRenew},
		{"a lease that ran out is in the end not renewed", (*trial).endsByItself},
		{"a release is done once and may be repeated", (*trial).releases},
		{"a stale release does nothing", (*trial).staleRelease},
		{"a lease can be handed to another process", (*trial).travels},
		{"a context that has ended is no refusal", (*trial).endedContext},
		{"nobody answers", (*trial).silence},
		{"an answer to Acquire is lost", (*trial).lostAcquire},
		{"an answer to Renew is lost", (*trial).lostRenew},
		{"an answer to Release is lost", (*trial).lostRelease},
		{"ExpiresAt counts from before the request", (*trial).countsFromTheSend},
		{"there is an order in which all answers are right", (*trial).history},
	}
}
