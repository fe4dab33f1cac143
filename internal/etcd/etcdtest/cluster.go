package etcdtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/etcd/embed"
)

// Options are the timings of a cluster. The zero value means etcd's own defaults.
type Options struct {
	TickMs     uint // heartbeat interval in milliseconds; default 100
	ElectionMs uint // time without a heartbeat after which a follower campaigns; default 1000
}

// Group is a cluster of real processes. Its methods are for the test's own goroutine.
type Group struct {
	t     testing.TB
	dir   string
	fork  *forker
	nodes []*node
}

// node is one member over all its runs.
type node struct {
	config  embed.Config
	run     *process // nil or ended when it was killed
	stopped bool
	id      uint64
	client  *clientv3.Client // asks this member only
}

// Cluster starts n members and returns when all of them serve.
func Cluster(t testing.TB, n int, o ...Options) *Group {
	t.Helper()
	var opts Options
	if len(o) > 0 {
		opts = o[0]
	}
	c := &Group{t: t, dir: tempDir(t), fork: newForker()}
	t.Cleanup(func() {
		c.Kill()
		c.fork.close()
	})

	// Peers talk over sockets in the cluster's directory, which is the working directory of each.
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("m%d=unix://m%d:1", i, i))
	}
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		c.nodes = append(c.nodes, &node{config: embed.Config{
			Dir: name, Name: name, Listen: reserve(t), Unsynced: true,
			Tick: cmp.Or(opts.TickMs, 100), Election: cmp.Or(opts.ElectionMs, 1000),
			Cluster: strings.Join(members, ","), Peer: "unix://" + name + ":1",
		}})
	}

	// Start them side by side, then learn who is who.
	c.Restart()
	c.Ready()
	for i, n := range c.nodes {
		n.client = Client(t, n.config.Listen)
		s, err := c.status(i, limit)
		if err != nil {
			t.Fatalf("etcdtest: status of member %d: %v", i, err)
		}
		n.id = s.Header.MemberId
	}
	return c
}

// Len is the number of members.
func (c *Group) Len() int { return len(c.nodes) }

// Endpoint is where member i serves; it stays the same for all its runs.
func (c *Group) Endpoint(i int) string { return c.nodes[i].config.Listen }

// Endpoints are those of all members.
func (c *Group) Endpoints() []string {
	var all []string
	for i := range c.nodes {
		all = append(all, c.Endpoint(i))
	}
	return all
}

// Client gives a client of the members named, or of all, that is closed when t ends.
func (c *Group) Client(t testing.TB, members ...int) *clientv3.Client {
	t.Helper()
	var endpoints []string
	for _, i := range c.these(members) {
		endpoints = append(endpoints, c.Endpoint(i))
	}
	return Client(t, endpoints...)
}

// Pid is the process id of member i's present or last run.
func (c *Group) Pid(i int) int { return c.nodes[i].run.cmd.Process.Pid }

// Stop freezes the members named, or all, and returns when they stand still.
func (c *Group) Stop(members ...int) {
	c.t.Helper()
	for _, i := range c.these(members) {
		if err := c.nodes[i].run.stop(); err != nil {
			c.t.Fatalf("etcdtest: stop member %d: %v", i, err)
		}
		c.nodes[i].stopped = true
	}
}

// Cont lets the members named, or all, go on.
func (c *Group) Cont(members ...int) {
	c.t.Helper()
	for _, i := range c.these(members) {
		if err := c.nodes[i].run.cont(); err != nil {
			c.t.Fatalf("etcdtest: continue member %d: %v", i, err)
		}
		c.nodes[i].stopped = false
	}
}

// Kill kills the members named, or all, as kill -9 does, and returns when they are gone.
func (c *Group) Kill(members ...int) {
	for _, i := range c.these(members) {
		if n := c.nodes[i]; n.run != nil {
			n.run.kill()
			n.stopped = false
		}
	}
}

// Restart kills the members named, or all, where they still run, and starts them on their data. It returns
// when they listen; Ready waits until they serve.
func (c *Group) Restart(members ...int) {
	c.t.Helper()
	c.Kill(members...)
	for _, i := range c.these(members) {
		n := c.nodes[i]
		run, err := startProcess(c.fork, c.dir, n.config)
		if err != nil {
			c.t.Fatalf("etcdtest: start member %d: %v", i, err)
		}
		n.run = run
	}
}

// Ready waits until every member that runs serves, which takes a leader.
func (c *Group) Ready() {
	c.t.Helper()
	for i, n := range c.nodes {
		if !n.runs() {
			continue
		}
		select {
		case <-n.run.ready:
		case <-n.run.exited:
			c.t.Fatalf("etcdtest: member %d: %v", i, n.run.failure())
		case <-time.After(limit):
			c.t.Fatalf("etcdtest: member %d does not become ready", i)
		}
	}
}

// Leader waits for a leader that a majority of the cluster agrees on, and returns its index.
func (c *Group) Leader() int {
	c.t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if leader, ok := c.leader(); ok {
			return leader
		}
		time.Sleep(20 * time.Millisecond) // an election is announced to nobody outside
	}
	c.t.Fatal("etcdtest: the cluster has no leader")
	return -1
}

// Follower returns the index of a running member that does not lead.
func (c *Group) Follower() int {
	c.t.Helper()
	leader := c.Leader()
	for i, n := range c.nodes {
		if i != leader && n.runs() {
			return i
		}
	}
	c.t.Fatal("etcdtest: no follower runs")
	return -1
}

// MoveLeader makes member to the leader and returns when it leads.
func (c *Group) MoveLeader(to int) {
	c.t.Helper()
	var err error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		leader := c.Leader()
		if leader == to {
			return
		}
		// The request fails when leadership is under way already: look again.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err = c.nodes[leader].client.MoveLeader(ctx, c.nodes[to].id)
		cancel()
	}
	c.t.Fatalf("etcdtest: member %d does not become the leader: %v", to, err)
}

// leader asks the running members once.
func (c *Group) leader() (index int, ok bool) {
	type vote struct{ leader, term uint64 }
	votes := map[vote]int{}
	for i, n := range c.nodes {
		if !n.runs() {
			continue
		}
		s, err := c.status(i, time.Second)
		if err != nil || s.Leader == 0 {
			continue
		}
		votes[vote{s.Leader, s.RaftTerm}]++
	}
	for v, count := range votes {
		for i, n := range c.nodes {
			if n.id == v.leader && n.runs() && count > len(c.nodes)/2 {
				return i, true
			}
		}
	}
	return -1, false
}

func (c *Group) status(i int, wait time.Duration) (*clientv3.StatusResponse, error) {
	n := c.nodes[i]
	if n.client == nil {
		return nil, errors.New("no client yet")
	}
	// Not the test's context: that ends before the cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return n.client.Status(ctx, n.config.Listen)
}

// these gives the members named, or all when none is.
func (c *Group) these(members []int) []int {
	if len(members) > 0 {
		return members
	}
	var all []int
	for i := range c.nodes {
		all = append(all, i)
	}
	return all
}

func (n *node) runs() bool { return n.run != nil && n.run.alive() && !n.stopped }
