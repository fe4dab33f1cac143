//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// storeFaults are those of what stands in etcd: what an operator does, by mistake or for the store's good.
func storeFaults() []kind {
	at := func(name string, rows []int, do meddling) kind {
		return kind{name: name, rows: rows, lane: laneStore, roles: contenders(), inject: do.inject}
	}
	return []kind{
		at("revoke-lease", []int{23, 26}, revoke),
		at("delete-key", []int{24, 26}, remove),
		at("replace-key", []int{25}, replace),
		at("evict", nil, evict),
		{name: "compact", rows: []int{30}, lane: laneStore, inject: compact},
		{name: "defragment", lane: laneStore, inject: defragment},
		{name: "nospace", rows: []int{29}, lane: laneStore, least: time.Second / 2, most: 5 * time.Second / 2, inject: noSpace},
	}
}

// contenders are the roles of parts that have keys of a known place.
func contenders() []role { return []role{roleWrapper, roleFenced} }

// meddling is what is done to a key of an office or a semaphore: that of who holds, as often as not, or of who waits.
type meddling func(context.Context, *arena, *part, coord.Candidate) error

func (do meddling) inject(ctx context.Context, s strike) (string, func() error, error) {
	all := s.turn(contenders())
	p, x := all[0], s.target/len(all)
	ranges := []string{hold.ElectPrefix(p.office)}
	if p.kind == hold.KindSema {
		ranges = []string{hold.SemaMaxRange(p.office, slots), hold.SlotRange(p.office, slots)}
	}
	queue, err := coord.ListCandidates(ctx, s.a.client, ranges[x/2%len(ranges)])
	if err != nil || len(queue) == 0 {
		return "", nil, errors.Join(errMissed, err)
	}
	c := queue[0]
	if x%2 == 1 {
		c = queue[x/4%len(queue)]
	}
	if err := do(ctx, s.a, p, c); err != nil {
		return "", nil, errors.Join(errMissed, err)
	}
	return fmt.Sprintf("%s token %d", c.Key, c.Token), nil, nil
}

func revoke(ctx context.Context, a *arena, _ *part, c coord.Candidate) error {
	_, err := a.client.Revoke(ctx, c.Lease)
	return err
}

func remove(ctx context.Context, a *arena, _ *part, c coord.Candidate) error {
	_, err := a.client.Delete(ctx, c.Key)
	return err
}

// replace deletes the key, and puts it anew in the name of somebody who is not there: on a lease of its own, which runs out.
func replace(ctx context.Context, a *arena, _ *part, c coord.Candidate) error {
	lease, err := a.client.Grant(ctx, 2)
	if err != nil {
		return err
	}
	if err := remove(ctx, a, nil, c); err != nil {
		return err
	}
	_, err = a.client.Put(ctx, c.Key, "somebody else", clientv3.WithLease(lease.ID))
	return err
}

// evict asks a holder to leave, by the key that conch evict puts.
func evict(ctx context.Context, a *arena, p *part, c coord.Candidate) error {
	key := hold.EvictKey(p.kind, p.office, int64(c.Lease)).String()
	done, err := a.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(c.Key), "=", int64(c.Token))).
		Then(clientv3.OpPut(key, `{"host":"chaos","pid":1}`, clientv3.WithLease(c.Lease))).Commit()
	if err == nil && !done.Succeeded {
		err = errMissed
	}
	return err
}

// compact takes the history away.
func compact(ctx context.Context, s strike) (string, func() error, error) {
	got, err := s.a.client.Get(ctx, "compact")
	if err == nil {
		_, err = s.a.client.Compact(ctx, got.Header.Revision)
	}
	if err != nil {
		return "", nil, errors.Join(errMissed, err)
	}
	return fmt.Sprintf("revision %d", got.Header.Revision), nil, nil
}

// defragment stops a member for as long as it takes to write its store anew.
func defragment(ctx context.Context, s strike) (string, func() error, error) {
	m := s.a.members[s.target%members]
	if _, err := m.client.Defragment(ctx, m.endpoint); err != nil {
		return "", nil, errors.Join(errMissed, err)
	}
	return m.name, nil, nil
}

// noSpace raises the alarm that a full store raises. Nothing but renewals, reads, deletes and revokes works until it is taken back.
func noSpace(ctx context.Context, s strike) (string, func() error, error) {
	m := s.a.members[s.target%members]
	status, err := m.status(ctx)
	if err != nil {
		return "", nil, errors.Join(errMissed, err)
	}
	alarm := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: pb.AlarmType_NOSPACE}
	disarm := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return s.a.disarm(ctx)
	}
	if _, err := pb.NewMaintenanceClient(s.a.client.ActiveConnection()).Alarm(ctx, alarm); err != nil {
		return "", nil, errors.Join(errMissed, err, disarm()) // it may have been raised all the same
	}
	return m.name, disarm, nil
}

// disarm takes back all alarms, as an operator does: until it has worked.
func (a *arena) disarm(ctx context.Context) (err error) {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, time.Second)
		_, err = a.client.AlarmDisarm(try, &clientv3.AlarmMember{})
		cancel()
		if err == nil {
			return nil
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return fmt.Errorf("take back alarms: %w", errors.Join(err, ctx.Err()))
}
