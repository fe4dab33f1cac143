//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// orphan kills wrappers whose children do not want to end. The peer, which waits for its lease to expire, is
// tried once.
func (b *bench) orphan(ctx context.Context) ([]result, error) {
	var (
		times   [2][]time.Duration
		orphans [2]int
	)
	for i, w := range b.wrappers() {
		rounds := b.rounds
		if i == 1 {
			rounds = 1
		}
		for round := range rounds {
			took, left, err := b.killed(ctx, w, fmt.Sprintf("orphan-%d", round))
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], took)
			orphans[i] += left
		}
	}
	r := compare("kill -9 to successor", times, 0)
	r.Ours, r.Limit = ptr(millis(slowest(times[0]))), ptr(250.0)
	o := result{Name: "orphans beside the successor", Unit: "count", Ours: ptr(float64(orphans[0])), Peers: ptr(float64(orphans[1])), Limit: ptr(0.0)}
	return []result{r, o}, nil
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
		return 0, 0, b.complain(w, err)
	}
	second := b.command(w, office, b.act, file, "0s")
	if err := second.Start(); err != nil {
		return 0, 0, fmt.Errorf("start %s: %w", w.name, err)
	}
	defer func() {
		_ = second.Process.Kill() // after an error
		_ = second.Wait()
	}()
	if err := b.queue.await(ctx, w.prefix(office), 2); err != nil {
		return 0, 0, b.complain(w, err)
	}
	idle()

	// The kill, and what the successor's child says.
	at := bootTime()
	if err := first.Process.Kill(); err != nil {
		return 0, 0, fmt.Errorf("kill %s: %w", w.name, err)
	}
	a, err := awaitAct(ctx, file)
	if err != nil {
		return 0, 0, b.complain(w, err)
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
