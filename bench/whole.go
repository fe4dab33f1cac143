//go:build linux

package main

import (
	"context"
	"time"
)

// whole runs each wrapper with a command that does nothing: from fork to reaped.
func (b *bench) whole(ctx context.Context) (outcome, error) {
	var all []contestant
	for _, w := range b.wrappers() {
		all = append(all, b.repeat(w.name, func(context.Context) (time.Duration, error) {
			cmd := b.command(w, "whole", "/bin/true")
			began := time.Now()
			if err := cmd.Run(); err != nil {
				return 0, b.complain(err)
			}
			return time.Since(began), nil
		}))
	}
	// The first start of a program reads it from the disk.
	for _, c := range all {
		if _, err := c.turn(ctx, 0); err != nil {
			return outcome{}, err
		}
	}
	s, err := alternate(ctx, b.rounds, all...)
	if err != nil {
		return outcome{}, err
	}
	return outcome{results: []result{
		compare("whole process", "ms", s[0], s[1]).atMost(1),
		compare("whole process", "ms", s[0], s[2]),
	}}, nil
}
