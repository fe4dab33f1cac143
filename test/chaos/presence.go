//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// presence is hosts that are registered, and watchers that are told of them: for each host up and down alternate, and when everything
// works again all that live are up, and each watcher knows what etcd has.
type presence struct {
	hosts, watchers []*part
	registry        registry
	visit           visit
}

// registry is where hosts stand, as the run sees it.
type registry interface {
	standing() (map[string]int64, error) // hosts, and when the processes that speak for them started
	put(host string) error
	remove(host string) error
}

// visit is how far the last question is: whether each watcher hears of a host that comes, and of its going.
type visit int

const (
	notAsked visit = iota
	coming
	going
	heard
)

// visitor is the host that comes and goes when all others are up.
const visitor = "visitor"

func newPresence(_ context.Context, a *arena) (workload, error) {
	p := &presence{registry: &registered{client: a.client}}
	for i := range 4 {
		p.hosts = append(p.hosts, a.ours(hostRole, fmt.Sprintf("node%d", i), i))
	}
	for i := range 2 {
		p.watchers = append(p.watchers, a.ours(watcherRole, fmt.Sprintf("eye%d", i), 3+i))
	}
	return p, nil
}

func (p *presence) parts() []*part { return slices.Concat(p.hosts, p.watchers) }

// called is the name of a part of ours as it says it: without its role and number.
func called(p *part) string { return p.argv[len(p.argv)-1] }

// waits until all hosts are up and each watcher knows it, and then asks for more: that a visitor's coming and going is heard of, since
// a watcher that hears nothing any more may be right by chance.
func (p *presence) waits(events []event, _ time.Duration) (late []violation) {
	if p.visit == heard {
		return nil
	}
	want, err := p.registry.standing()
	if err != nil {
		return []violation{violationf("presence", 0, "nobody knows which hosts are up: %v", err)}
	}
	for _, h := range p.hosts {
		if _, up := want[called(h)]; !up {
			late = append(late, violationf("presence", 0, "%s lives and is not up, although nothing is in the way any more", called(h)))
		}
	}
	if _, up := want[visitor]; p.visit == coming && !up {
		late = append(late, violationf("presence", 0, "the %s is gone before everybody has heard of it", visitor))
	}
	for _, w := range p.watchers {
		if got := view(events, called(w)); !maps.Equal(got, want) {
			late = append(late, violationf("presence", 0, "%s knows of %v, and etcd has %v", called(w), got, want))
		}
	}
	if len(late) > 0 {
		return late
	}
	switch p.visit {
	case notAsked:
		err = p.registry.put(visitor)
	case coming:
		err = p.registry.remove(visitor)
	}
	if err != nil {
		return []violation{violationf("presence", 0, "the visitor can not come and go: %v", err)}
	}
	if p.visit++; p.visit == heard {
		return nil
	}
	return []violation{violationf("presence", 0, "nobody has heard yet that the %s comes or goes", visitor)}
}

// life is when the process that speaks for a host started: one that lost its key and came back is the same host as before, and a
// watcher that has not told of the one need not tell of the other.
func life(e event) int64 {
	n, err := strconv.ParseInt(e.Value, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// view is which hosts are up by what a watcher was told last, and their lives.
func view(events []event, watcher string) map[string]int64 {
	up := map[string]int64{}
	for _, e := range events {
		if e.Slot != watcher {
			continue
		}
		switch e.What {
		case whatWatch:
			clear(up)
		case whatUp:
			up[e.Name] = life(e)
		case whatDown:
			delete(up, e.Name)
		}
	}
	return up
}

// audit judges what each watcher was told.
func (p *presence) audit(events []event) (found []violation) {
	for _, w := range p.watchers {
		found = append(found, alternate(events, called(w))...)
	}
	gone := map[string]uint64{}             // the newest key of each host that somebody was told is gone
	ended := map[string]map[string]uint64{} // what was gone when a watcher began
	for _, e := range events {
		switch {
		case e.What == whatWatch:
			ended[e.Slot] = maps.Clone(gone)
		case e.What == whatDown && e.Token > gone[e.Name]:
			gone[e.Name] = e.Token
		case e.What == whatUp && e.Token <= ended[e.Slot][e.Name]:
			found = append(found, violationf("presence", e.At, "%s is told that %s is up by the key %d, which was gone before it looked", e.Slot, e.Name, e.Token))
		}
	}
	return found
}

// alternate judges the order of what one watcher was told.
func alternate(events []event, watcher string) (found []violation) {
	up, last := map[string]int64{}, map[string]event{}
	wrong := func(e event, format string, args ...any) {
		found = append(found, violationf("presence", e.At, "%s, process %d: %s %s, key %d, life %s: %s",
			watcher, e.Pid, e.Name, e.What, e.Token, e.Value, fmt.Sprintf(format, args...)))
	}
	listed := false
	for _, e := range events {
		if e.Slot != watcher {
			continue
		}
		was, is := up[e.Name]
		switch e.What {
		case whatWatch:
			clear(up)
			clear(last)
			listed = false
		case whatUp:
			if is {
				wrong(e, "it was up already, with the life %d", was)
			}
			if e.Token <= last[e.Name].Token || life(e) < life(last[e.Name]) {
				wrong(e, "after key %d, life %s", last[e.Name].Token, last[e.Name].Value)
			}
			up[e.Name], last[e.Name] = life(e), e
		case whatDown: // of the last of several lives, where it was not told of these
			if !is || life(e) < was {
				wrong(e, "it was not up with that, but with %d", was)
			}
			delete(up, e.Name)
			last[e.Name] = e
		case whatUpdate:
			if !is || life(e) != was {
				wrong(e, "it was not up with that, but with %d", was)
			}
		case whatListed:
			if listed {
				wrong(e, "a second time")
			}
			listed = true
		case whatEnded:
			wrong(e, "nobody has ended it: %s", e.Text)
		}
	}
	return found
}

func (p *presence) tally(events []event, numbers map[string]int) {
	for _, e := range events {
		switch {
		case e.What == whatUp || e.What == whatDown:
			numbers["hosts told "+string(e.What)]++
		case e.What == whatStale:
			numbers["views told stale"]++
		}
	}
}

// registered is the registry in etcd.
type registered struct {
	client *clientv3.Client
	lease  clientv3.LeaseID // of the visitor
}

// glance bounds a look of the run at etcd.
const glance = 5 * time.Second

func (r *registered) standing() (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), glance)
	defer cancel()
	got, err := r.client.Get(ctx, coord.HostsPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	up := map[string]int64{}
	for _, kv := range got.Kvs {
		host, err := coord.DecodeHost(kv)
		if err != nil {
			return nil, err
		}
		up[host.HostUUID] = host.StartedAt
	}
	return up, nil
}

func (r *registered) put(host string) error {
	ctx, cancel := context.WithTimeout(context.Background(), glance)
	defer cancel()
	lease, err := r.client.Grant(ctx, int64(patience.Seconds()))
	if err != nil {
		return err
	}
	r.lease = lease.ID
	_, err = r.client.Put(ctx, coord.HostsPrefix+host, `{}`, clientv3.WithLease(lease.ID))
	if err != nil {
		err = errors.Join(err, r.remove(host))
	}
	return err
}

func (r *registered) remove(string) error {
	ctx, cancel := context.WithTimeout(context.Background(), glance)
	defer cancel()
	_, err := r.client.Revoke(ctx, r.lease)
	return err
}
