//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// memory adds up what stays resident while a child runs: the wrapper and all below it that is not the child. The two run at the
// same time: they share no memory, and neither does anything but renew.
func (b *bench) memory(ctx context.Context) (outcome, error) {
	s := []series{{name: b.wrappers()[0].name}, {name: etcdctlLock}}
	for round := range b.few() {
		sum := make([]float64, len(s))
		_, err := spread(ctx, len(s), func(i int) (err error) {
			sum[i], err = b.resident(ctx, b.wrappers()[i], fmt.Sprintf("memory-%d", round))
			return err
		})
		if err != nil {
			return outcome{}, err
		}
		for i := range s {
			s[i].turns = append(s[i].turns, sum[i:i+1])
		}
	}
	return outcome{results: []result{compare("memory (PSS) of wrapper and guard", "MB", s[0], s[1]).atMost(1)}}, nil
}

func (b *bench) resident(ctx context.Context, w wrapper, office string) (float64, error) {
	file := filepath.Join(b.dir, w.name+"."+office)
	gate := file + ".gate"
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return 0, err
	}
	cmd := b.command(w, office, b.act, file, "0s", gate)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", w.name, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()

	// Some renewals later it is what it stays.
	if err := b.common.await(ctx, w.prefix(office), 1); err != nil {
		_ = cmd.Process.Kill()
		<-done
		return 0, b.complain(err)
	}
	if err := wait(ctx, b.calm); err != nil {
		_ = cmd.Process.Kill()
		<-done
		return 0, err
	}
	sum, pssErr := pssBelow(cmd.Process.Pid, b.act)
	if err := openGate(ctx, gate); err != nil {
		_ = cmd.Process.Kill()
		<-done
		return 0, err
	}
	if err := <-done; err != nil {
		return 0, b.complain(err)
	}
	return sum, pssErr
}

// binary compares sizes on disk.
func (b *bench) binary(context.Context) (outcome, error) {
	size := map[string]series{}
	for _, name := range []string{"conch", "conchd", "holdguard", "etcdctl"} {
		info, err := os.Stat(b.program(name))
		if err != nil {
			return outcome{}, fmt.Errorf("measure binary: %w", err)
		}
		size[name] = once(name, float64(info.Size())/1e6)
	}
	return outcome{results: []result{
		compare("binary of conch, stripped", "MB", size["conch"], size["etcdctl"]).within(19),
		alone("binary of the guard", "MB", size["holdguard"]),
		alone("binary of conchd", "MB", size["conchd"]),
	}}, nil
}
