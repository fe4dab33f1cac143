//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/bench/plot"
)

// outcome is what a case measured.
type outcome struct {
	results []result
	charts  []plot.Chart
}

// benchCase is one thing that can be measured. Its results stand together in a document, under its name.
type benchCase struct {
	name string
	take func(*bench, context.Context) (outcome, error)
}

// cases are in the order in which they are measured.
func cases() []benchCase {
	return []benchCase{
		{"whole", (*bench).whole}, {"hand-over", (*bench).handOver}, {"orphan", (*bench).orphan},
		{"memory", (*bench).memory}, {"binary", (*bench).binary},
		{"succession", (*bench).succession}, {"election", (*bench).election}, {"pool", (*bench).pool},
		{"kept", (*bench).kept}, {"hosts", (*bench).hosts}, {"fan-out", (*bench).fanOut},
		{"burst", (*bench).burst}, {"jobs", (*bench).jobs},
		{"stored", (*bench).stored}, {"live", (*bench).live}, {"watchers", (*bench).watchers},
	}
}

func caseNames() (names []string) {
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// choose gives the cases named, or all.
func choose(only string) ([]benchCase, error) {
	if only == "" {
		return cases(), nil
	}
	wanted := strings.Split(only, ",")
	var chosen []benchCase
	for _, c := range cases() {
		if slices.Contains(wanted, c.name) {
			chosen = append(chosen, c)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(caseNames(), name) {
			return nil, fmt.Errorf("-only %q: want some of %s", name, strings.Join(caseNames(), ", "))
		}
	}
	return chosen, nil
}

// effort is how much is done.
type effort struct {
	rounds int           // turns of each contestant
	slice  time.Duration // how long a turn is, where it is free
	span   time.Duration // how long something is looked at that does little
	calm   time.Duration // how long what was started may take to become what it stays

	flights  []int         // calls in flight
	keys     int           // held at the same time, on a pool
	sessions int           // kept at the same time
	keep     time.Duration // from one renewal to the next
	fleets   []int         // hosts in view, or stored
	audience int           // watchers of each kind of one change
	crowd    int           // jobs due in one second
	idle     []int         // jobs that are not due
	peers    []int         // processes, with a connection each, that register or hold
	viewers  []int         // processes, with a connection each, that watch
}

// full is what `make bench` does.
func full(rounds int) effort {
	return effort{
		rounds: rounds, slice: 250 * time.Millisecond, span: 6 * time.Second, calm: 3 * time.Second,
		flights: []int{1, 16, 64}, keys: 10_000, sessions: 10_000, keep: 5 * time.Second,
		fleets: []int{1000, 10_000, 50_000}, audience: 8, crowd: 1000, idle: []int{100, 1000, 10_000},
		peers: []int{100, 300, 1000}, viewers: []int{10, 100, 1000},
	}
}

// few is a third of the rounds, for what takes long.
func (e effort) few() int { return max(e.rounds/3, 1) }

// bench is one run.
type bench struct {
	effort
	bin     string // where the binaries are
	dir     string // scratch
	act     string // the measured child
	bare    string // the wrapper that does the least
	stderr  *os.File
	members int     // how many were started
	common  *member // etcd, for the cases that leave nothing behind
}

// newBench makes what the cases need.
func newBench(ctx context.Context, bin string, e effort) (*bench, error) {
	abs, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "conch-bench")
	if err != nil {
		return nil, err
	}
	b := &bench{effort: e, bin: abs, dir: dir}
	if err := b.open(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) open(ctx context.Context) (err error) {
	if b.stderr, err = os.OpenFile(filepath.Join(b.dir, "stderr"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	var failed [2]error
	b.act, failed[0] = b.build(ctx, "act")
	b.bare, failed[1] = b.build(ctx, "bare")
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	b.common, err = b.startEtcd(ctx)
	return err
}

func (b *bench) close() {
	if b.common != nil {
		b.common.stop()
	}
	if b.stderr != nil {
		b.stderr.Close()
	}
	os.RemoveAll(b.dir)
}

// take measures one case.
func (b *bench) take(ctx context.Context, c benchCase) (outcome, error) {
	busy := load()
	o, err := c.take(b, ctx)
	for i := range o.results {
		o.results[i].Case, o.results[i].Load = c.name, busy
	}
	return o, err
}

func (b *bench) program(name string) string { return filepath.Join(b.bin, name) }
