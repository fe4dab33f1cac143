//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/etcdlock"
	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/coordination/fence/etcdfence"
)

const (
	lockerRole = "locker"
	// registerPrefix is where lockers write. What was written stays.
	registerPrefix = "/chaos/register/"
	// lockTTL is that of the leases of lockers.
	lockTTL = 4 * time.Second
	// lockEpoch is how long a lock and the register under it are used. Then come new ones: a search for an order takes longer than in
	// proportion to what is searched.
	lockEpoch = 30 * time.Second
	// lockCall bounds a call.
	lockCall = 2 * time.Second
)

// locker is a program that locks, and writes under the token that it got to a register that is fenced. It looks at no clock: it goes
// on until it is told that it holds nothing any more, so that the fence has something to refuse.
type locker struct {
	*program
	locks *etcdlock.Locker
	lease coordination.Lease // what it holds, or believes that it does
	guard *etcdfence.Guard   // of the register under it
}

// runLocker is LEDGER NAME.
func runLocker(args []string) (err error) {
	ctx, p, err := openProgram(args)
	if err != nil {
		return err
	}
	defer p.client.Close()
	l := &locker{program: p, locks: etcdlock.New(p.client, etcdlock.Options{})}
	defer func() { err = errors.Join(err, l.locks.Close()) }()
	for ctx.Err() == nil && err == nil {
		err = l.round(ctx)
	}
	return err
}

// round asks for the lock once. Who holds writes; who does not reads.
func (l *locker) round(ctx context.Context) error {
	key := fmt.Sprintf("%s.%d", l.hold.Name, coord.Now()/lockEpoch)
	held, err := l.acquire(ctx, key)
	if err != nil {
		return err
	}
	if !held {
		pause(ctx, 150*time.Millisecond)
		if l.lease.Key == key && rand.N(2) == 0 {
			_, err := l.write(ctx) // under the token of its last lease, as one that does not know that it is over
			return err
		}
		return l.read(ctx, key)
	}
	if l.guard, err = etcdfence.New(registerPrefix + key + "/seen"); err != nil {
		return err
	}
	return l.work(ctx)
}

// work writes, and renews the lease, until it is time to release it or there is nothing to be released.
func (l *locker) work(ctx context.Context) error {
	over, renew := time.After(rand.N(3*time.Second)), time.NewTicker(lockTTL/4)
	defer renew.Stop()
	var doze <-chan time.Time
	if rand.N(4) == 0 {
		doze = time.After(rand.N(time.Second))
	}
	for {
		// Whoever was stopped wakes in the pause, mostly, and writes before anything else.
		pause(ctx, 40*time.Millisecond)
		switch next, err := l.write(ctx); {
		case err != nil || next == stops:
			return err
		case next == leaves:
			return l.release(ctx)
		}
		select {
		case <-ctx.Done():
			return l.release(ctx)
		case <-doze: // as one that is stopped, at every moment but within a call
			pause(ctx, 2*lockTTL)
		case <-over:
			return l.release(ctx)
		case <-renew.C:
			if good, err := l.renew(ctx); !good || err != nil {
				return err
			}
		default:
		}
	}
}

// then is what a locker does after a write.
type then int

const (
	writes then = iota // the next one
	leaves             // it releases
	stops              // it holds nothing any more
)

// ask makes a call of the lock or the register. Errors that must not be, whatever happens to etcd, end the program.
func (l *locker) ask(ctx context.Context, e event, do func(context.Context, *event) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lockCall)
	defer cancel()
	failed := l.call(e, func(answer *event) {
		if err = do(ctx, answer); err != nil {
			answer.Text, answer.Value = wordUnknown, err.Error()
		}
	})
	if errors.Is(err, fence.ErrDamaged) || errors.Is(err, fence.ErrInvalid) || errors.Is(err, coord.ErrStoreRegressed) {
		return errors.Join(err, failed)
	}
	return failed
}

// granted puts into an answer what a Locker says.
func (l *locker) granted(answer *event, lease coordination.Lease, held bool) {
	if answer.Text = wordNo; held {
		l.lease = lease
		answer.Text, answer.Token, answer.Until = wordYes, lease.Token, coord.Now()+lease.Remaining()
	}
}

func (l *locker) acquire(ctx context.Context, key string) (held bool, err error) {
	err = l.ask(ctx, event{Name: key, Text: callAcquire}, func(ctx context.Context, answer *event) error {
		lease, ok, err := l.locks.Acquire(ctx, key, l.value(), lockTTL)
		if held = ok && err == nil; err == nil {
			l.granted(answer, lease, held)
		}
		return err
	})
	return held, err
}

// renew reports whether to go on. Without an answer it does.
func (l *locker) renew(ctx context.Context) (good bool, err error) {
	err = l.ask(ctx, event{Name: l.lease.Key, Text: callRenew, Token: l.lease.Token}, func(ctx context.Context, answer *event) error {
		lease, held, err := l.locks.Renew(ctx, l.lease, lockTTL)
		if good = held || err != nil; err == nil {
			l.granted(answer, lease, held)
		}
		return err
	})
	return good, err
}

func (l *locker) release(ctx context.Context) error {
	return l.ask(context.WithoutCancel(ctx), event{Name: l.lease.Key, Text: callRelease, Token: l.lease.Token}, func(ctx context.Context, answer *event) error {
		answer.Text = wordYes
		return l.locks.Release(ctx, l.lease)
	})
}

// write makes one write. Where it is not known whether that was done it is the last one under this token: two such writes could land
// in any order, much later, which is nobody's fault but the writer's.
func (l *locker) write(ctx context.Context) (next then, err error) {
	value := l.value()
	err = l.ask(ctx, event{Name: l.lease.Key, Text: callWrite, Token: l.lease.Token, Value: value}, func(ctx context.Context, answer *event) error {
		_, err := l.guard.Do(ctx, l.client, l.lease.Token, clientv3.OpPut(registerPrefix+l.lease.Key+"/value", value))
		var refused *fence.ErrFenced
		if errors.As(err, &refused) {
			next, answer.Text, answer.Token = stops, wordNo, refused.Seen
			return nil
		}
		if answer.Text = wordYes; err != nil {
			next = leaves
		}
		return err
	})
	return next, err
}

func (l *locker) read(ctx context.Context, key string) error {
	return l.ask(ctx, event{Name: key, Text: callRead}, func(ctx context.Context, answer *event) error {
		got, err := l.client.Get(ctx, registerPrefix+key+"/value")
		if err != nil {
			return err
		}
		if answer.Text = wordYes; len(got.Kvs) > 0 {
			answer.Value = string(got.Kvs[0].Value)
		}
		return nil
	})
}
