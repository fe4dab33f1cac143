//go:build linux

package main

import (
	"context"
	"net"
	"os"
	"time"
)

// whole runs each wrapper with a command that does nothing, in turns.
func (b *bench) whole(ctx context.Context) ([]result, error) {
	var times [2][]time.Duration
	for round := range 1 + 5*b.rounds {
		for i, w := range b.wrappers() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			cmd := b.command(w, "whole", "/bin/true")
			start := time.Now()
			if err := cmd.Run(); err != nil {
				return nil, b.complain(w, err)
			}
			// The first round warms the page cache.
			if round > 0 {
				times[i] = append(times[i], time.Since(start))
			}
		}
	}
	return []result{compare("whole process", times, 1)}, nil
}

// freeAddress is a loopback address that nobody has right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// idle lets the machine come to rest, so that one round does not pay for the last.
func idle() { time.Sleep(200 * time.Millisecond) }

// exists reports whether a process is there, be it a zombie.
func exists(pid int) bool {
	_, err := os.Stat(procPath(pid, "stat"))
	return err == nil
}
