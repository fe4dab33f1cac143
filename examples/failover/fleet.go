package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// fleet are the hosts that live.
type fleet struct {
	client   *clientv3.Client
	endpoint string
	hosts    map[string]*host
}

// host is one of them, as a process.
type host struct {
	name string
	cmd  *exec.Cmd
	from *bufio.Scanner
}

func (f *fleet) names() []string { return slices.Sorted(maps.Keys(f.hosts)) }

// start starts a host, and returns when all see each other.
func (f *fleet) start(ctx context.Context, name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, hostRole, name, f.endpoint)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	h := &host{name: name, cmd: cmd, from: bufio.NewScanner(out)}
	before := f.names()
	f.hosts[name] = h
	if err := h.until("up", nil); err != nil {
		return err
	}
	for _, other := range before {
		if err := errors.Join(h.until("sees "+other, nil), f.hosts[other].until("sees "+name, nil)); err != nil {
			return err
		}
	}
	return nil
}

// kill kills the first host, and returns when all others are through with that.
func (f *fleet) kill(ctx context.Context) error {
	dead := f.names()[0]
	where, err := placed(ctx, f.client)
	if err != nil {
		return err
	}
	hers := of(dead, where)
	fmt.Printf("\n%s  is killed (SIGKILL). It ran %s\n", dead, strings.Join(hers, ", "))
	f.hosts[dead].end(syscall.SIGKILL)
	delete(f.hosts, dead)

	moves := map[string][]string{}
	for _, name := range f.names() {
		err := f.hosts[name].until("is through with "+dead, func(line string) {
			if machine, takes := strings.CutPrefix(line, "takes "); takes {
				moves[machine] = append(moves[machine], name)
			}
		})
		if err != nil {
			return err
		}
	}
	return verify(ctx, f.client, dead, hers, moves)
}

// end tells all hosts to stop, and waits for them.
func (f *fleet) end() {
	for _, name := range f.names() {
		f.hosts[name].end(syscall.SIGTERM)
	}
}

// until passes a host's lines on, to heard too, up to one that begins as expected.
func (h *host) until(begins string, heard func(line string)) error {
	for h.from.Scan() {
		line := h.from.Text()
		fmt.Printf("%s  %s\n", h.name, line)
		if heard != nil {
			heard(line)
		}
		if strings.HasPrefix(line, begins) {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%s has ended, without %q", h.name, begins), h.from.Err())
}

func (h *host) end(sig syscall.Signal) {
	_ = h.cmd.Process.Signal(sig)
	_ = h.cmd.Wait()
}
