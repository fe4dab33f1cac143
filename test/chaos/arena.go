//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/go-coord/coord/test/netns"
)

// The size of an arena.
const (
	members = 3
	hosts   = 5
)

// arena is where it happens: a cluster, hosts, and what a run keeps of them.
type arena struct {
	config
	history *history
	launch  *launcher
	members []*member
	hosts   []*host
	client  *clientv3.Client // of the run: nothing happens to its network
}

// host is where parts of workloads run: a network of its own, where there is one.
type host struct {
	name string
	net  *netns.Namespace // nil: that of the machine
	link netns.Link
}

// networks is where members and hosts are, on one bridge in the namespace of the inner process.
const networks = "10.78.0."

// newArena makes the networks, the members and their client. Close ends what there is of it also after an error.
func newArena(ctx context.Context, c config, h *history) (*arena, error) {
	a := &arena{config: c, history: h, launch: newLauncher(c.mark())}
	for _, dir := range []string{a.path("log"), a.scratch("locks"), a.scratch("status")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return a, err
		}
	}
	if c.Netns {
		if err := netns.Bridge(netns.Link{In: netns.Here(), Name: "bridge", Address: networks + "254/24"}); err != nil {
			return a, err
		}
	}
	for i := range hosts {
		o := &host{name: fmt.Sprintf("h%d", i)}
		a.hosts = append(a.hosts, o)
		if err := a.connect(&o.net, &o.link, o.name, 100+i); err != nil {
			return a, err
		}
	}
	if err := a.newMembers(); err != nil {
		return a, err
	}
	if err := a.startMembers(ctx); err != nil {
		return a, err
	}
	return a, nil
}

// connect makes a namespace with a cable into the bridge.
func (a *arena) connect(ns **netns.Namespace, link *netns.Link, name string, number int) (err error) {
	if !a.Netns {
		return nil
	}
	if *ns, err = netns.New(netns.Here()); err != nil {
		return err
	}
	*link = netns.Link{In: *ns, Name: "eth0", Address: fmt.Sprintf("%s%d/24", networks, number)}
	near := netns.Link{In: netns.Here(), Name: name}
	if err := netns.Cable(near, *link); err != nil {
		return err
	}
	return near.Attach("bridge")
}

// startMembers starts all members, waits until they serve, and learns who is who.
func (a *arena) startMembers(ctx context.Context) (err error) {
	if a.client, err = dial(a.endpoints()...); err != nil {
		return err
	}
	for _, m := range a.members {
		err = errors.Join(err, m.start())
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, m := range a.members {
		if err := m.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dial gives a client that says nothing by itself, and notices within a few seconds that a member is stopped.
func dial(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(), DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: time.Second,
	})
}

// endpoints are those of all members.
func (a *arena) endpoints() (all []string) {
	for _, m := range a.members {
		all = append(all, m.endpoint)
	}
	return all
}

// environ is what a part is told: the endpoints.
func (a *arena) environ() []string {
	return []string{"CONCH_ENDPOINTS=" + strings.Join(a.endpoints(), ",")}
}

// enter is a command that runs another one on a host.
func (o *host) enter(command ...string) []string {
	if o.net == nil {
		return command
	}
	return o.net.Enter(command...)
}

// program is the path of one of the commands.
func (a *arena) program(name string) string { return filepath.Join(a.Bin, name) }

// close ends the members and the networks.
func (a *arena) close() {
	if a.client != nil {
		_ = a.client.Close()
	}
	for _, m := range a.members {
		m.close()
	}
	for _, o := range a.hosts {
		if o.net != nil {
			o.net.Close()
		}
	}
}
