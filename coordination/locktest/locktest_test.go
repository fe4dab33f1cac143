package locktest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/coordination"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a tester that writes down what a row says, and goes on.
type recorder struct {
	t      *testing.T
	mu     sync.Mutex
	failed []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.t.Context() }
func (r *recorder) Logf(string, ...any)      {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// complaints runs one row on a Locker with a flaw, in a bubble of fake time, and gives what it says.
func complaints(t *testing.T, f flaw, r row, hurt ...func(*store, *Store)) (said []string) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		under := Store{
			Locker: &locker{s, f}, Peer: func() coordination.Locker { return &locker{s, f} },
			Slow: s.slow, Silence: s.silence, LoseReply: s.loseReply,
		}
		for _, h := range hurt {
			h(s, &under)
		}
		rec := &recorder{t: t}
		var done sync.WaitGroup
		done.Go(func() { r.check(Options{}.withDefaults().trial(rec, under)) })
		done.Wait()
		said = rec.failed
	})
	return said
}

func TestASoundLockerPasses(t *testing.T) {
	t.Parallel()
	for _, f := range []flaw{none, deaf, adopts, stallsFirst} {
		for _, r := range rows() {
			for _, said := range complaints(t, f, r) {
				t.Errorf("%s: %s: %s", f, r.name, said)
			}
		}
	}
}

// rejections are the rows that have to find a flaw, and what they say.
func rejections() map[flaw]struct{ row, says string } {
	return map[flaw]struct{ row, says string }{
		tokenRestarts:      {"expired, a key is granted again with a higher token", "want a higher one"},
		tokenStays:         {"released, a key is granted again with a higher token", "want a higher one"},
		tokenOfRenewal:     {"a renewal keeps the token and lasts", "a renewal changed the token"},
		staleRelease:       {"a stale release does nothing", "was given to"},
		staleReleaseFails:  {"a release is done once and may be repeated", "release: not held"},
		staleRenew:         {"a lease that is over is not renewed", "want false, nil"},
		renewsTheSuccessor: {"a lease that is over is not renewed", "superseded"},
		releasesNothing:    {"a release is done once and may be repeated", "want it held"},
		countsFromTheReply: {"ExpiresAt counts from before the request", "past what was asked for"},
		promisesTooMuch:    {"a free key is granted", "after the answer"},
		endsInThePast:      {"a free key is granted", "before the request"},
		reentrant:          {"a held key is refused, to the same owner too", "was given to"},
		falseOnError:       {"a context that has ended is no refusal", "want an error"},
		invalidOnError:     {"a context that has ended is no refusal", "want another error"},
		leaksOnGivingUp:    {"a context that has ended is no refusal", "is not free"},
		doneOnError:        {"nobody answers", "want an error"},
		losesTheSilent:     {"nobody answers", "was not renewed after a silence"},
		errorOnHeld:        {"a held key is refused, to the same owner too", "want a refusal without an error"},
		leaseWithFalse:     {"a held key is refused, to the same owner too", "want the zero Lease"},
		heldAndError:       {"a free key is granted", "want it held"},
		takesAnything:      {"what makes no sense is an invalid lease", "want ErrInvalidLease"},
		foldsKeys:          {"keys are told apart byte for byte", "want it held"},
		looksThenTakes:     {"of many who ask at once one is granted", "of 16 who asked at once"},
		leaksOnLostReply:   {"an answer to Acquire is lost", "is not free"},
		repeatsBlindly:     {"an answer to Acquire is lost", "want an error"},
		renewsNothing:      {"a renewal keeps the token and lasts", "was given to"},
		keepsTheEnd:        {"a renewal keeps the token and lasts", "want a later one"},
		forgetsOwner:       {"a renewal keeps the token and lasts", "want a lease of"},
		stalls:             {"a renewal keeps the token and lasts", "ran out before they could be renewed"},
		stallsForLong:      {"a renewal keeps the token and lasts", "while it was renewed"},
		sameTTLOnly:        {"a renewal may have another ttl", "and lasts for"},
		cutsShort:          {"an answer to Renew is lost", "was given away"},
		endsEarly:          {"expired, a key is granted again with a higher token", "was given away"},
		neverEnds:          {"a lease that ran out is in the end not renewed", "although it had run out"},
		losesTheLease:      {"a lease can be handed to another process", "was not renewed"},
	}
}

func TestABrokenLockerIsRejected(t *testing.T) {
	t.Parallel()
	for f, want := range rejections() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			for _, r := range rows() {
				// All rows, whatever they find: none of them hangs on a Locker that is broken elsewhere.
				said := strings.Join(complaints(t, f, r), "\n")
				if r.name == want.row && !strings.Contains(said, want.says) {
					t.Errorf("the row %q says %q, want %q", r.name, said, want.says)
				}
			}
		})
	}
}

func TestEachRejectionIsByARowThatThereIs(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, r := range rows() {
		names[r.name] = true
	}
	for f, want := range rejections() {
		if !names[want.row] {
			t.Errorf("%s: there is no row %q", f, want.row)
		}
	}
}

// What many clients are told contradicts itself where a Locker is broken, whatever row that is about.
func TestTheHistoryOfABrokenLockerHasNoOrder(t *testing.T) {
	t.Parallel()
	for _, f := range []flaw{
		tokenRestarts, tokenStays, tokenOfRenewal, staleRelease, staleRenew, renewsTheSuccessor, reentrant, looksThenTakes, endsEarly,
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			all := rows()
			said := ""
			for range 50 { // what clients do is drawn: one history may be one without a trace of it
				if said = strings.Join(complaints(t, f, all[len(all)-1]), "\n"); said != "" {
					break
				}
			}
			if !strings.Contains(said, "no order of") || !strings.Contains(said, "none of these can follow") {
				t.Errorf("%q", said)
			}
		})
	}
}

// A history in which calls were not answered has an order if they may have happened, or not.
func TestTheHistoryOfAStoreInTroubleHasAnOrder(t *testing.T) {
	t.Parallel()
	all := rows()
	troubled := func(s *store, under *Store) { under.Trouble = s.trouble }
	for _, f := range []flaw{none, adopts} {
		for range 20 {
			if said := complaints(t, f, all[len(all)-1], troubled); len(said) > 0 {
				t.Errorf("%s: %q", f, said)
			}
		}
	}
}

// A bubble's clock has no monotonic reading to lose.
func TestAnEndWithoutAMonotonicReadingIsRejected(t *testing.T) {
	t.Parallel()
	s, rec := newStore(), &recorder{t: t}
	Options{}.withDefaults().trial(rec, Store{Locker: &locker{s, wallClock}}).granted()
	if !strings.Contains(strings.Join(rec.failed, "\n"), "no monotonic reading") {
		t.Errorf("%q", rec.failed)
	}
}

// What nobody can do to a store is not tried, and is no complaint.
func TestAStoreThatCannotBeHurtPasses(t *testing.T) {
	t.Parallel()
	RunWith(t, Options{Bubble: true, TTL: time.Second}, func(t *testing.T) Store {
		return Store{Locker: &locker{newStore(), none}}
	})
}

func TestAHistoryAlone(t *testing.T) {
	t.Parallel()
	History(t, Options{Bubble: true}, func(t *testing.T) Store { return Store{Locker: &locker{newStore(), none}} })
}

func TestRunInRealTime(t *testing.T) {
	t.Parallel()
	Run(t, func(t *testing.T) coordination.Locker { return &locker{newStore(), none} })
}
