package coord

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// HostView is the hosts that were up at one moment, by UUID.
type HostView struct {
	Hosts []Host
	// Revision is etcd's when the last change was seen.
	Revision int64
	// AsOf is the time by this machine's clock at which etcd had nothing that the view does not show. Stale
	// says that this is longer ago than StaleAfter.
	AsOf  time.Time
	Stale bool
	// Flaps counts the hosts that came back within DownGrace since the watcher began.
	Flaps int
}

// Host is one host of a view.
type Host struct {
	Metadata HostMetadata
	// Age is how long the host has been up: since its StartedAt, or, where that says nothing or lies in the
	// future, since it was first seen here.
	Age time.Duration
	// Incarnation is the create revision of its key, Lease what the key is on: 0 where it is on none, and
	// then it never goes by itself.
	Incarnation int64
	Lease       clientv3.LeaseID
	// Stopping: it has said that it stops.
	Stopping bool
	// Missing: its key is gone, and DownGrace is not over.
	Missing bool
}

// ListHosts reads the hosts that are there now, linearizably. prefix "" is HostsPrefix.
func ListHosts(ctx context.Context, cli *clientv3.Client, prefix string) (HostView, error) {
	o, _ := WatcherOptions{Prefix: prefix}.withDefaults() // nothing in it can be wrong
	now := time.Now()
	all, head, err := newTail(cli, o.follow(), nil).read(ctx)
	if err != nil {
		return HostView{}, fmt.Errorf("list hosts: %w", err)
	}
	r := newRoll(o)
	r.list(readAll(all), head.GetRevision(), now)
	r.fresh(now)
	return r.snapshot(now), nil
}

// Snapshot is the hosts that are up now, as far as the watcher knows; see AsOf and Stale. A consumer that is
// behind may not have been told of all of it yet.
func (w *HostWatcher) Snapshot() HostView {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roll.snapshot(time.Now())
}

func (r *roll) snapshot(now time.Time) HostView {
	v := HostView{Revision: r.rev, AsOf: r.asOf, Stale: r.old(now), Flaps: r.flaps, Hosts: make([]Host, 0, len(r.hosts))}
	for _, e := range r.hosts {
		switch {
		case e.now != nil:
			v.Hosts = append(v.Hosts, e.now.host(now))
		case e.line == &r.lapsing:
			h := e.lost.host(now)
			h.Missing = true
			v.Hosts = append(v.Hosts, h)
		}
	}
	slices.SortFunc(v.Hosts, func(a, b Host) int { return cmp.Compare(a.Metadata.HostUUID, b.Metadata.HostUUID) })
	return v
}

func (l *life) host(now time.Time) Host {
	began := l.since
	if at := time.Unix(0, l.StartedAt); l.StartedAt > 0 && !at.After(now) {
		began = at
	}
	return Host{Metadata: l.clone(), Age: now.Sub(began), Incarnation: l.created, Lease: l.lease, Stopping: l.stopping}
}

// Select is the view of the hosts that selector fits; see [ParseSelector].
func (v HostView) Select(selector string) (HostView, error) {
	s, err := ParseSelector(selector)
	if err != nil {
		return HostView{}, err
	}
	all := v.Hosts
	v.Hosts = nil
	for _, h := range all {
		if s.Fits(h.Metadata) {
			v.Hosts = append(v.Hosts, h)
		}
	}
	return v, nil
}

// Selector is what the labels of a host have to be.
type Selector map[string]string

// ParseSelector reads "key=value,key=value": all of them have to fit. The empty text fits every host.
func ParseSelector(s string) (Selector, error) {
	all := Selector{}
	if s == "" {
		return all, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%w: selector %.40q: want key=value", ErrInvalidOption, part)
		}
		if why := cmp.Or(badName(key, "/"), badValue(value)); why != "" {
			return nil, fmt.Errorf("%w: selector %.40q: label %s", ErrInvalidOption, part, why)
		}
		if was, twice := all[key]; twice && was != value {
			return nil, fmt.Errorf("%w: selector: label %.40q cannot have two values", ErrInvalidOption, key)
		}
		all[key] = value
	}
	return all, nil
}

// Fits reports whether a host has all the labels.
func (s Selector) Fits(m HostMetadata) bool {
	for key, value := range s {
		if got, ok := m.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
