//go:build linux

package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-coord/coord"
)

// A watcher is asked for; it tells of a host, or of its view; it has ended, and nobody told it to.
const (
	whatWatch                                                      what = "watch"
	whatUp, whatDown, whatUpdate, whatListed, whatStale, whatFresh what = "up", "down", "update", "snapshot-done", "stale", "fresh"
	whatEnded                                                      what = "ended"
)

const (
	hostRole    = "host"
	watcherRole = "watcher"
	hostTTL     = 4 // seconds
)

// runHost is LEDGER NAME: a host that is registered for as long as it lives.
func runHost(args []string) error {
	ctx, p, err := openProgram(args)
	if err != nil {
		return err
	}
	defer p.client.Close()
	var host *coord.HostLiveness
	for host == nil && ctx.Err() == nil {
		// Where etcd cannot be reached, or the key of the process before stays for long, it tries again.
		host, err = coord.RegisterHostLiveness(ctx, p.client, coord.HostMetadata{HostUUID: p.hold.Name}, coord.LivenessOptions{LeaseTTLSec: hostTTL})
		if err != nil {
			pause(ctx, time.Second/2)
		}
	}
	if host == nil {
		return nil
	}
	if p.hold.Pid%2 == 0 {
		host.Context() // from now on it renews as one that has to prove that it lives
	}
	<-ctx.Done()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience/2)
	defer cancel()
	_ = host.Stop(bounded) // what it could not revoke goes with its lease
	return nil
}

// runWatcher is LEDGER NAME: it writes down what it is told of hosts.
func runWatcher(args []string) error {
	ctx, p, err := openProgram(args)
	if err != nil {
		return err
	}
	defer p.client.Close()
	p.hold.Name, p.hold.Slot = "", p.hold.Name
	for ctx.Err() == nil {
		if err := p.say(whatWatch, ""); err != nil {
			return err
		}
		w, err := coord.NewHostWatcher(ctx, p.client, coord.WatcherOptions{Extended: true, StaleAfter: 2 * time.Second})
		if err != nil {
			pause(ctx, time.Second/2) // etcd does not answer
			continue
		}
		for ev := range w.Events() {
			if err := p.told(ev); err != nil {
				return errors.Join(err, w.Close())
			}
		}
		if ctx.Err() == nil {
			if err := p.say(whatEnded, w.Err().Error()); err != nil {
				return err
			}
		}
	}
	return nil
}

// told writes down one event of a watcher.
func (p *program) told(ev coord.HostEvent) error {
	e := event{
		At: coord.Now(), What: what(ev.Kind.String()), Name: ev.HostUUID, Slot: p.hold.Slot, Pid: p.hold.Pid,
		Token: uint64(ev.Incarnation), Value: strconv.FormatInt(ev.Metadata.StartedAt, 10),
	}
	switch {
	case ev.Err != nil:
		e.Text = ev.Err.Error()
	case ev.Kind == coord.HostDown:
		e.Text = ev.Reason.String()
	}
	return note(p.file, e)
}
