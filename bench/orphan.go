//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-coord/coord/bench/plot"
)

// orphan kills wrappers whose children do not want to end. The peer, whose successor waits for a lease to expire, costs
// nothing meanwhile: its rounds stand beside each other, and one turn is all of them.
func (b *bench) orphan(ctx context.Context) (outcome, error) {
	var orphans [2]atomic.Int64
	kill := func(ctx context.Context, i int, office string) (float64, error) {
		took, left, err := b.killed(ctx, b.wrappers()[i], office)
		orphans[i].Add(int64(left))
		return millis(took), err
	}
	s, err := alternate(ctx, b.rounds, contestant{b.wrappers()[0].name, func(ctx context.Context, round int) ([]float64, error) {
		took, err := kill(ctx, 0, fmt.Sprintf("orphan-%d", round))
		return []float64{took}, err
	}})
	if err != nil {
		return outcome{}, err
	}
	peers, err := alternate(ctx, 1, contestant{etcdctlLock, func(ctx context.Context, _ int) ([]float64, error) {
		took := make([]float64, b.few())
		_, err := spread(ctx, len(took), func(i int) (err error) {
			took[i], err = kill(ctx, 1, fmt.Sprintf("orphan-%d", i))
			return err
		})
		return took, err
	}})
	if err != nil {
		return outcome{}, err
	}
	return outcome{
		results: []result{
			compare("kill -9 of the wrapper to its successor's child", "ms", s[0], peers[0]).atMost(0.02),
			alone("the same, slowest", "ms", s[0]).within(250),
			alone("orphans beside the successor", "count", once("", float64(orphans[0].Load()))).within(0),
			alone("orphans beside the successor, "+etcdctlLock, "count", once("", float64(orphans[1].Load()))),
		},
		charts: []plot.Chart{distribution("crash", "Crash hand-over: kill -9 of the wrapper to its successor's child", []series{s[0], peers[0]})},
	}, nil
}

// killed kills one wrapper and waits for the successor's child. left is how many processes of the first
// child were alive when the second had acted.
func (b *bench) killed(ctx context.Context, w wrapper, office string) (took time.Duration, left int, err error) {
	file := filepath.Join(b.dir, w.name+"."+office)
	first := b.command(w, office, b.act, file, "stubborn")
	if err := first.Start(); err != nil {
		return 0, 0, fmt.Errorf("start %s: %w", w.name, err)
	}
	tree, err := awaitStubborn(ctx, file)
	defer func() {
		_ = first.Process.Kill() // after an error
		_ = first.Wait()
		// A stubborn child of a peer goes on; it is ours to end.
		for _, pid := range tree {
			if exists(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}()
	if err != nil {
		return 0, 0, b.complain(err)
	}
	second := b.command(w, office, b.act, file, "0s")
	if err := second.Start(); err != nil {
		return 0, 0, fmt.Errorf("start %s: %w", w.name, err)
	}
	defer func() {
		_ = second.Process.Kill() // after an error
		_ = second.Wait()
	}()
	if err := b.common.await(ctx, w.prefix(office), 2); err != nil {
		return 0, 0, b.complain(err)
	}
	if err := rest(ctx); err != nil {
		return 0, 0, err
	}

	// The kill, and what the successor's child says.
	at := bootTime()
	if err := first.Process.Kill(); err != nil {
		return 0, 0, fmt.Errorf("kill %s: %w", w.name, err)
	}
	a, err := awaitAct(ctx, file)
	if err != nil {
		return 0, 0, b.complain(err)
	}
	for _, pid := range tree {
		if exists(pid) {
			left++
		}
	}
	return time.Duration(a.start - at), left, nil
}

// awaitStubborn waits for the line of a stubborn child and gives its processes.
func awaitStubborn(ctx context.Context, file string) ([]int, error) {
	var pids []int
	err := poll(ctx, func() bool {
		raw, err := os.ReadFile(file)
		var pid, grandchild int
		var start int64
		if err != nil || !strings.HasSuffix(string(raw), "\n") {
			return false
		}
		if _, err := fmt.Sscanf(string(raw), "stubborn %d %d %d", &pid, &start, &grandchild); err != nil {
			return false
		}
		pids = []int{pid, grandchild}
		return true
	})
	return pids, err
}

// awaitAct waits for the first act in file.
func awaitAct(ctx context.Context, file string) (interval, error) {
	var acts []interval
	err := poll(ctx, func() bool {
		var err error
		acts, err = readActs(file)
		return err == nil && len(acts) > 0
	})
	if err != nil {
		return interval{}, err
	}
	return acts[0], nil
}

func poll(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// bootTime reads the clock that act uses.
func bootTime() int64 {
	const clock = 7
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return ts.Nano()
}
