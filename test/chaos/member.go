//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/test/netns"
)

// member is an etcd member over all its runs.
type member struct {
	a        *arena
	name     string
	net      *netns.Namespace
	link     netns.Link
	endpoint string
	peer     string
	args     []string
	client   *clientv3.Client // of this member only

	mu  sync.Mutex
	run *process
}

// newMembers makes those of an arena. None runs yet.
func (a *arena) newMembers() error {
	var cluster []string
	for i := range members {
		m := &member{a: a, name: fmt.Sprintf("m%d", i)}
		a.members = append(a.members, m)
		if err := a.connect(&m.net, &m.link, m.name, i+1); err != nil {
			return err
		}
		if m.endpoint, m.peer = memberAddress(i)+":2379", "http://"+memberAddress(i)+":2380"; !a.Netns {
			m.endpoint, m.peer = "unix://"+a.scratch(m.name+".sock"), "unix://"+m.name+":1" // etcd wants the one absolute, the other not
		}
		cluster = append(cluster, m.name+"="+m.peer)
	}
	for _, m := range a.members {
		url := m.endpoint
		if a.Netns {
			url = "http://" + url
		}
		m.args = []string{
			a.program("etcd"), "--name", m.name, "--data-dir", a.scratch(m.name), "--unsafe-no-fsync", "--log-level", "warn",
			"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", m.peer,
			"--initial-advertise-peer-urls", m.peer, "--initial-cluster", strings.Join(cluster, ","),
		}
	}
	return nil
}

// memberAddress is where a member is.
func memberAddress(i int) string { return networks + strconv.Itoa(i+1) }

// start starts the member on its data. One that runs stays.
func (m *member) start() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil && m.run.alive() {
		return nil
	}
	if m.client == nil {
		if m.client, err = dial(m.endpoint); err != nil {
			return err
		}
	}
	argv := m.args
	if m.net != nil {
		argv = m.net.Enter(argv...)
	}
	m.run, err = m.a.launch.start(argv, nil, m.a.scratch(), m.a.path("log", m.name))
	return err
}

// renew makes a new member at the place of an old one, which is not to be one any more, and starts it. The cluster takes it when all the
// others have been connected for a while.
func (m *member) renew(old uint64) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for there := false; !there; {
		if there, err = m.rejoin(ctx, old); err != nil && ctx.Err() != nil {
			return fmt.Errorf("replace member %s: %w", m.name, err)
		}
		time.Sleep(50 * time.Millisecond) // the cluster tells nobody that it would take one now
	}
	if err := os.RemoveAll(m.a.scratch(m.name)); err != nil {
		return err
	}
	if !slices.Contains(m.args, existing) {
		m.args = append(m.args, existing)
	}
	return m.start()
}

// rejoin takes one step on the way: the old member goes, then the new one comes. It reports whether that is there.
func (m *member) rejoin(ctx context.Context, old uint64) (bool, error) {
	list, err := m.a.client.MemberList(ctx)
	if err != nil {
		return false, err
	}
	for _, other := range list.Members {
		switch {
		case other.ID == old:
			_, err := m.a.client.MemberRemove(ctx, old)
			return false, err
		case slices.Contains(other.PeerURLs, m.peer):
			return true, nil
		}
	}
	_, err = m.a.client.MemberAdd(ctx, []string{m.peer})
	return false, err
}

// existing makes a member one of a cluster that is there.
const existing = "--initial-cluster-state=existing"

// ready waits until the member serves, which takes a leader.
func (m *member) ready(ctx context.Context) error {
	for {
		try, cancel := context.WithTimeout(ctx, time.Second)
		_, err := m.client.Get(try, "ready")
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("wait for member %s: %w", m.name, err)
		case !m.process().alive() && m.process().code == 1:
			// A new member asks the others who belongs to the cluster, and ends where they were killed as well.
			if err := m.start(); err != nil {
				return err
			}
		case !m.process().alive():
			return fmt.Errorf("member %s ended with code %d: see %s", m.name, m.process().code, filepath.Join("log", m.name))
		}
		time.Sleep(20 * time.Millisecond) // a member announces to nobody that it serves
	}
}

func (m *member) process() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.run
}

func (m *member) signal(s syscall.Signal) { m.process().signal(s) }

// status asks the member how it is.
func (m *member) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return m.client.Status(ctx, m.endpoint)
}

// leader is the member that a majority follows.
func (a *arena) leader(ctx context.Context) (*member, error) {
	for ctx.Err() == nil {
		votes := map[uint64]int{}
		ids := map[uint64]*member{}
		for _, m := range a.members {
			if s, err := m.status(ctx); err == nil {
				votes[s.Leader]++
				ids[s.Header.MemberId] = m
			}
		}
		for id, n := range votes {
			if m := ids[id]; m != nil && n > members/2 {
				return m, nil
			}
		}
		time.Sleep(20 * time.Millisecond) // an election is announced to nobody outside
	}
	return nil, errors.New("the cluster has no leader")
}

// close ends the member for good, and its network.
func (m *member) close() {
	if p := m.process(); p != nil {
		p.kill()
	}
	if m.client != nil {
		_ = m.client.Close()
	}
	if m.net != nil {
		m.net.Close()
	}
}
