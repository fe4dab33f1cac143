package coordination

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const ttl = 9 * time.Second

var errAway = errors.New("the store is away")

// scripted is a Locker that does what a test says, and notes what it was asked.
type scripted struct {
	mu    sync.Mutex
	calls []string
	began time.Time

	acquire func(Lease) (Lease, bool, error)
	renew   func(ctx context.Context, n int, next Lease) (Lease, bool, error)
	release func(ctx context.Context) error
}

func (s *scripted) note(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, what+" at "+time.Since(s.began).String())
	n := 0
	for _, c := range s.calls {
		if strings.HasPrefix(c, what) {
			n++
		}
	}
	return n
}

func (s *scripted) Acquire(_ context.Context, key, owner string, ttl time.Duration) (Lease, bool, error) {
	s.note("acquire")
	lease := Lease{Key: key, Owner: owner, Token: 33, ExpiresAt: time.Now().Add(ttl)}
	if s.acquire != nil {
		return s.acquire(lease)
	}
	return lease, true, nil
}

func (s *scripted) Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, bool, error) {
	n := s.note("renew")
	next := lease
	next.ExpiresAt = time.Now().Add(ttl)
	if s.renew != nil {
		return s.renew(ctx, n, next)
	}
	return next, true, nil
}

func (s *scripted) Release(ctx context.Context, lease Lease) error {
	s.note("release")
	if err := lease.Validate(); err != nil {
		return err
	}
	if s.release != nil {
		return s.release(ctx)
	}
	return nil
}

// until is a function for Run that works for a while, or until its context ends: then it says why and stays for late.
func until(t *testing.T, work, late time.Duration, cause *error, at *time.Duration) func(context.Context, Lease) error {
	began := time.Now()
	return func(ctx context.Context, lease Lease) error {
		if lease.Token != 33 || lease.Key != "k" || lease.Owner != "o" {
			t.Errorf("lease %+v", lease)
		}
		select {
		case <-time.After(work):
			return nil
		case <-ctx.Done():
			*cause, *at = context.Cause(ctx), time.Since(began)
			time.Sleep(late) // a bubble's: it takes its time to stop
			return ctx.Err()
		}
	}
}

func TestRun(t *testing.T) {
	hangs := func(ctx context.Context, _ int, _ Lease) (Lease, bool, error) {
		<-ctx.Done()
		return Lease{}, false, ctx.Err()
	}
	var deaf chan struct{} // made in the bubble of the one test that has it
	for name, row := range map[string]struct {
		locker     *scripted // nil: one that works
		work, late time.Duration
		is         []error
		lostAt     time.Duration // 0: never
		calls      []string
	}{
		"the work is short": {
			work: time.Second, calls: []string{"acquire at 0s", "release at 1s"},
		},
		"the work is long": {
			work: 7 * time.Second, calls: []string{"acquire at 0s", "renew at 3s", "renew at 6s", "release at 7s"},
		},
		"somebody holds it": {
			locker: &scripted{acquire: func(Lease) (Lease, bool, error) { return Lease{}, false, nil }},
			is:     []error{ErrHeld}, calls: []string{"acquire at 0s"},
		},
		"nobody answers at the start": {
			locker: &scripted{acquire: func(Lease) (Lease, bool, error) { return Lease{}, false, errAway }},
			is:     []error{errAway}, calls: []string{"acquire at 0s"},
		},
		"a renewal says that it is not held": {
			locker: &scripted{renew: func(_ context.Context, n int, next Lease) (Lease, bool, error) { return next, n < 2, nil }},
			work:   time.Hour, late: time.Second, is: []error{ErrRunLeaseLost, errNotHeld, context.Canceled}, lostAt: 6 * time.Second,
			calls: []string{"acquire at 0s", "renew at 3s", "renew at 6s", "release at 7s"},
		},
		"renewals fail for a while": {
			locker: &scripted{renew: func(_ context.Context, n int, next Lease) (Lease, bool, error) {
				if n < 4 {
					return Lease{}, false, errAway
				}
				return next, true, nil
			}},
			work: 5 * time.Second, calls: []string{"acquire at 0s", "renew at 3s", "renew at 3.375s", "renew at 3.75s", "renew at 4.125s", "release at 5s"},
		},
		"renewals fail until it is over": {
			locker: &scripted{renew: func(context.Context, int, Lease) (Lease, bool, error) { return Lease{}, false, errAway }},
			work:   time.Hour, is: []error{ErrRunLeaseLost, errNoAnswer, errAway}, lostAt: ttl * 9 / 10,
		},
		"renewals hang until their contexts end": {
			locker: &scripted{renew: hangs},
			work:   time.Hour, is: []error{ErrRunLeaseLost, errNoAnswer, context.DeadlineExceeded}, lostAt: ttl * 9 / 10,
		},
		"a renewal hangs whatever becomes of its context": {
			locker: &scripted{renew: func(context.Context, int, Lease) (Lease, bool, error) { <-deaf; return Lease{}, true, nil }},
			work:   time.Hour, is: []error{ErrRunLeaseLost, errNoAnswer}, lostAt: ttl * 9 / 10,
			calls: []string{"acquire at 0s", "renew at 3s", "release at 8.1s"},
		},
		"a renewal is under way when the work is done": {
			locker: &scripted{renew: hangs},
			work:   4 * time.Second, calls: []string{"acquire at 0s", "renew at 3s", "release at 4s"},
		},
		"the release fails": {
			locker: &scripted{release: func(context.Context) error { return errAway }},
			work:   time.Second, is: []error{errAway}, calls: []string{"acquire at 0s", "release at 1s"},
		},
		"the release hangs": {
			locker: &scripted{release: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			work:   time.Second, is: []error{context.DeadlineExceeded}, calls: []string{"acquire at 0s", "release at 1s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(t *testing.T) {
				var cause error
				var lostAt time.Duration
				locker := row.locker
				if locker == nil {
					locker = new(scripted)
				}
				locker.began = time.Now()
				err := Run(t.Context(), locker, "k", "o", ttl, until(t, row.work, row.late, &cause, &lostAt))
				if (err == nil) != (len(row.is) == 0) {
					t.Errorf("%v, want %v", err, row.is)
				}
				for _, want := range row.is {
					if !errors.Is(err, want) {
						t.Errorf("%v is no %v", err, want)
					}
				}
				if lostAt != row.lostAt || (lostAt != 0) != errors.Is(cause, ErrRunLeaseLost) {
					t.Errorf("lost at %v (%v), want %v", lostAt, cause, row.lostAt)
				}
				if row.calls != nil && !slices.Equal(locker.calls, row.calls) {
					t.Errorf("calls %q, want %q", locker.calls, row.calls)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				deaf = make(chan struct{})
				play(t)
				close(deaf)
			})
		})
	}
}

// A caller that gives up ends the work, and the lease goes on until the work has ended.
func TestRunRenewsUntilTheWorkHasEndedAlsoForACallerWhoHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now()}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		err := Run(ctx, s, "k", "o", ttl, func(ctx context.Context, _ Lease) error {
			<-ctx.Done()
			time.Sleep(10 * time.Second) // a bubble's: it takes its time to stop
			return context.Cause(ctx)
		})
		if !errors.Is(err, gone) || errors.Is(err, ErrRunLeaseLost) {
			t.Error(err)
		}
		if want := []string{"acquire at 0s", "renew at 3s", "renew at 6s", "renew at 9s", "release at 11s"}; !slices.Equal(s.calls, want) {
			t.Errorf("calls %q, want %q", s.calls, want)
		}
	})
}

func TestRunReleasesWhenTheWorkPanics(t *testing.T) {
	t.Parallel()
	s := &scripted{began: time.Now()}
	func() {
		defer func() {
			if recover() != "no" {
				t.Error("the panic is swallowed")
			}
		}()
		_ = Run(t.Context(), s, "k", "o", ttl, func(context.Context, Lease) error { panic("no") })
	}()
	if len(s.calls) != 2 || !strings.HasPrefix(s.calls[1], "release") {
		t.Errorf("calls %q", s.calls)
	}
}

// A process that was paused finds out when its work returns, if not before.
func TestAPauseBeyondTheLeaseIsTold(t *testing.T) {
	t.Parallel()
	s := &scripted{acquire: func(lease Lease) (Lease, bool, error) {
		lease.ExpiresAt = time.Now() // as if all of it had passed since
		return lease, true, nil
	}}
	if err := Run(t.Context(), s, "k", "o", time.Hour, func(context.Context, Lease) error { return nil }); !errors.Is(err, ErrRunLeaseLost) {
		t.Error(err)
	}
}

// It finds out also where its renewals were stopped before they could.
func TestTheEndLooksAtTheClockItself(t *testing.T) {
	t.Parallel()
	var told error
	r := &renewing{
		lease: Lease{ExpiresAt: time.Now()}, // over
		lose:  func(why error) { told = why },
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	close(r.done)
	if err := r.end(); !errors.Is(err, ErrRunLeaseLost) || !errors.Is(told, ErrRunLeaseLost) {
		t.Errorf("end gave %v, and told %v", err, told)
	}
}
