//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memory adds up what stays resident while a child runs: the wrapper and all below it that is not the child.
func (b *bench) memory(ctx context.Context) ([]result, error) {
	var sum [2]float64
	for i, w := range b.wrappers() {
		var err error
		if sum[i], err = b.resident(ctx, w); err != nil {
			return nil, err
		}
	}
	return []result{{Name: "memory (PSS)", Unit: "MB", Ours: ptr(sum[0]), Peers: ptr(sum[1]), Ratio: ptr(sum[0] / sum[1]), MaxRatio: ptr(1.0)}}, nil
}

func (b *bench) resident(ctx context.Context, w wrapper) (float64, error) {
	file := filepath.Join(b.dir, w.name+".memory")
	gate := file + ".gate"
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return 0, err
	}
	cmd := b.command(w, "memory", b.act, file, "0s", gate)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", w.name, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()

	// Some renewals later it is what it stays.
	if err := b.queue.await(ctx, w.prefix("memory"), 1); err != nil {
		_ = cmd.Process.Kill()
		<-done
		return 0, b.complain(w, err)
	}
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
	sum, pssErr := pssBelow(cmd.Process.Pid, b.act)
	if err := openGate(ctx, gate); err != nil {
		_ = cmd.Process.Kill()
		<-done
		return 0, err
	}
	if err := <-done; err != nil {
		return 0, b.complain(w, err)
	}
	return sum, pssErr
}

// pssBelow adds up a process and its descendants, without those that run the program but, in megabytes.
func pssBelow(pid int, but string) (float64, error) {
	if exe, err := os.Readlink(procPath(pid, "exe")); err == nil && exe == but {
		return 0, nil
	}
	kb, err := pss(pid)
	if err != nil {
		return 0, err
	}
	sum := kb * 1024 / 1e6
	lists, err := filepath.Glob(procPath(pid, "task/*/children"))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that ended
		}
		for _, field := range strings.Fields(string(raw)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return 0, fmt.Errorf("read children: %w", err)
			}
			more, err := pssBelow(child, but)
			if err != nil {
				return 0, err
			}
			sum += more
		}
	}
	return sum, nil
}

// pss is a process's share of the memory, in kilobytes.
func pss(pid int) (float64, error) {
	raw, err := os.ReadFile(procPath(pid, "smaps_rollup"))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			return strconv.ParseFloat(strings.Fields(value)[0], 64)
		}
	}
	return 0, fmt.Errorf("read memory of process %d: no Pss", pid)
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// binary compares sizes on disk.
func (b *bench) binary(context.Context) ([]result, error) {
	size := map[string]float64{}
	for _, name := range []string{"conch", "holdguard", "etcdctl"} {
		info, err := os.Stat(b.program(name))
		if err != nil {
			return nil, fmt.Errorf("measure binary: %w", err)
		}
		size[name] = float64(info.Size()) / 1e6
	}
	return []result{
		{Name: "binary", Unit: "MB", Ours: ptr(size["conch"]), Peers: ptr(size["etcdctl"]), Limit: ptr(17.0)},
		{Name: "binary of the guard", Unit: "MB", Ours: ptr(size["holdguard"])},
	}, nil
}
