//go:build linux

package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/test/netns"
)

// memberFaults are those of the cluster. Each leaves it whole when it ends.
func memberFaults() []kind {
	const s = time.Second
	fault := func(name string, rows []int, least, most time.Duration, of choice, do deed) kind {
		return kind{name: name, rows: rows, lane: laneMember, least: least, most: most, inject: ordeal{of, do}.inject}
	}
	cut := func(name string, rows []int, of choice) kind {
		k := fault(name, rows, s, 6*s, of, cutOff)
		k.netns = true
		return k
	}
	return []kind{
		fault("kill-member", []int{12}, s/2, 3*s, anyone, killed),
		fault("kill-leader", []int{12}, s/2, 3*s, leading, killed),
		fault("restart-all", []int{22}, s/2, 3*s/2, everyone, killed),
		fault("stop-member", []int{16}, s, 6*s, anyone, stopped),
		fault("stop-leader", []int{11}, s, 3*s, leading, stopped),
		// Longer than the lease of the shorter offices: what it wakes up to is history.
		fault("stop-leader-long", []int{11}, 6*s, 11*s, leading, stopped),
		fault("stop-majority", []int{21}, s/2, 5*s, majority, stopped),
		fault("move-leader", []int{12}, 0, 0, anyone, leads),
		fault("replace-member", []int{32}, s/2, 2*s, anyone, replaced),
		cut("cut-member", []int{13}, anyone),
		cut("cut-leader", []int{13}, leading),
	}
}

// choice chooses members by the target of a fault.
type choice func(ctx context.Context, s strike) ([]*member, error)

func anyone(_ context.Context, s strike) ([]*member, error) {
	return []*member{s.a.members[s.target%members]}, nil
}

func leading(ctx context.Context, s strike) ([]*member, error) {
	m, err := s.a.leader(ctx)
	return []*member{m}, err
}

func everyone(_ context.Context, s strike) ([]*member, error) { return s.a.members, nil }

// majority are all but one.
func majority(_ context.Context, s strike) (some []*member, err error) {
	for i := range members - 1 {
		some = append(some, s.a.members[(s.target+i)%members])
	}
	return some, nil
}

// deed is what is done to one member, and what undoes it.
type deed func(ctx context.Context, s strike, m *member) (undo func() error, err error)

func killed(_ context.Context, _ strike, m *member) (func() error, error) {
	m.process().kill()
	return m.start, nil
}

func stopped(_ context.Context, _ strike, m *member) (func() error, error) {
	m.signal(syscall.SIGSTOP)
	return func() error { m.signal(syscall.SIGCONT); return nil }, nil
}

// cutOff drops what is said between the member and its peers. Its clients go on hearing it.
func cutOff(_ context.Context, s strike, m *member) (func() error, error) {
	const peers = "tcp dport 2380 drop; tcp sport 2380 drop"
	return filtered(m.net, s.id, peers, peers)
}

// replaced takes the member out of the cluster, with all that it knows. What comes back at its place is a new one.
func replaced(ctx context.Context, s strike, m *member) (func() error, error) {
	status, err := m.status(ctx)
	if err != nil {
		return nil, errors.Join(errMissed, err)
	}
	_, err = s.a.client.MemberRemove(ctx, status.Header.MemberId)
	for _, refusal := range []error{rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberNotFound} {
		if errors.Is(err, refusal) {
			return nil, errors.Join(errMissed, err)
		}
	}
	// Whatever else went wrong, it may have been done, or be done yet.
	m.process().kill()
	return func() error { return m.renew(status.Header.MemberId) }, nil
}

// leads makes the member the leader. That it is already, or that etcd is at it, is no reason to fail.
func leads(ctx context.Context, s strike, m *member) (func() error, error) {
	leader, err := s.a.leader(ctx)
	if err != nil {
		return nil, err
	}
	status, err := m.status(ctx)
	if err != nil || leader == m {
		return nil, errors.Join(errMissed, err)
	}
	if _, err := leader.client.MoveLeader(ctx, status.Header.MemberId); err != nil {
		return nil, errors.Join(errMissed, err)
	}
	return nil, nil
}

// ordeal is something that is done to some members.
type ordeal struct {
	of choice
	do deed
}

// inject does it to all of them. At the end, when all is undone, it waits until each serves again.
func (o ordeal) inject(ctx context.Context, s strike) (target string, heal func() error, err error) {
	chosen, err := o.of(ctx, s)
	if err != nil {
		return "", nil, errors.Join(errMissed, err)
	}
	var undone []func() error
	for _, m := range chosen {
		undo, err := o.do(ctx, s, m)
		if err != nil {
			return "", nil, err
		}
		target += " " + m.name
		if undo != nil {
			undone = append(undone, undo)
		}
	}
	if target = target[1:]; len(undone) == 0 {
		return target, nil, nil
	}
	return target, func() (err error) {
		for _, undo := range undone {
			err = errors.Join(err, undo())
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, m := range chosen {
			err = errors.Join(err, m.ready(ctx))
		}
		return err
	}, nil
}

// filtered has the packets of a namespace meet rules until the returned function is called.
func filtered(ns *netns.Namespace, id int, in, out string) (func() error, error) {
	name := filterName(id)
	if err := ns.Filter(name, in, out); err != nil {
		return nil, err
	}
	return func() error { return ns.Unfilter(name) }, nil
}
