//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-coord/coord/bench/plot"
)

const (
	queued  = 10
	actTime = "50ms"
)

// interval is what one child wrote down, in nanoseconds.
type interval struct {
	pid        int
	start, end int64
}

// handOver measures queues of each wrapper: from the last act of one child to the first act of the next.
func (b *bench) handOver(ctx context.Context) (outcome, error) {
	overlaps := map[string]int{}
	var all []contestant
	for _, w := range b.wrappers() {
		all = append(all, contestant{w.name, func(ctx context.Context, round int) ([]float64, error) {
			acts, err := b.queueOf(ctx, w, fmt.Sprintf("queue-%d", round))
			if err != nil {
				return nil, err
			}
			gaps, over := handOvers(acts)
			overlaps[w.name] += over
			var ms []float64
			for _, gap := range gaps {
				ms = append(ms, millis(gap))
			}
			return ms, nil
		}})
	}
	s, err := alternate(ctx, b.rounds, all...)
	if err != nil {
		return outcome{}, err
	}
	count := func(s series) series { return once(s.name, float64(overlaps[s.name])) }
	return outcome{
		results: []result{
			compare("hand-over p50", "ms", s[0], s[1]).atMost(1),
			compare("hand-over p50", "ms", s[0], s[2]),
			alone("hand-over overlaps", "count", count(s[0])).within(0),
		},
		charts: []plot.Chart{distribution("hand-over", "Hand-over: last act of a child to first act of the next", s)},
	}, nil
}

// distribution is how much of what was measured took at most how long.
func distribution(name, title string, all []series) plot.Chart {
	c := plot.Chart{Name: name, Title: title, X: plot.Axis{Label: "time, ms", Log: true}, Y: plot.Axis{Label: "took at most so long, %"}}
	for _, s := range all {
		times := slices.Sorted(slices.Values(s.all()))
		l := plot.Line{Label: s.name}
		for p := 0; p <= 100; p += 2 {
			l.Points = append(l.Points, [2]float64{round(times[min(len(times)*p/100, len(times)-1)]), float64(p)})
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

// handOvers are the times between the end of one act and the start of the next, and how many acts began
// before another had ended.
func handOvers(acts []interval) (gaps []time.Duration, overlaps int) {
	slices.SortFunc(acts, func(a, b interval) int { return int(a.start - b.start) })
	for i := 1; i < len(acts); i++ {
		gap := acts[i].start - acts[i-1].end
		if gap < 0 {
			overlaps++
			continue
		}
		gaps = append(gaps, time.Duration(gap))
	}
	return gaps, overlaps
}

// queueOf lets a first wrapper hold the office until the others wait, and returns what all children did.
func (b *bench) queueOf(ctx context.Context, w wrapper, office string) ([]interval, error) {
	file := filepath.Join(b.dir, w.name+"."+office)
	gate := file + ".gate"
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return nil, fmt.Errorf("make gate: %w", err)
	}
	var running []*exec.Cmd
	defer func() {
		// After an error; else all have been reaped. A child may outlive its wrapper at the gate.
		for _, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if fd, err := syscall.Open(gate, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0); err == nil {
			_ = syscall.Close(fd)
		}
	}()

	// Queue up.
	for i := range 1 + queued {
		child := []string{b.act, file, actTime}
		if i == 0 {
			child = append(child, gate)
		}
		cmd := b.command(w, office, child...)
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start %s: %w", w.name, err)
		}
		running = append(running, cmd)
		if err := b.common.await(ctx, w.prefix(office), int64(i+1)); err != nil {
			return nil, b.complain(err)
		}
	}
	if err := rest(ctx); err != nil {
		return nil, err
	}

	// Let go, and wait for all.
	if err := openGate(ctx, gate); err != nil {
		return nil, err
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			return nil, b.complain(err)
		}
	}
	running = nil
	acts, err := readActs(file)
	if err == nil && len(acts) != 1+queued {
		err = fmt.Errorf("run %s: %d children acted, want %d", w.name, len(acts), 1+queued)
	}
	return acts, err
}

// openGate lets a child pass, once it stands before the gate.
func openGate(ctx context.Context, gate string) error {
	for {
		fd, err := syscall.Open(gate, syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err == nil {
			return syscall.Close(fd)
		}
		if !errors.Is(err, syscall.ENXIO) {
			return fmt.Errorf("open gate: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// rest lets the machine come to rest, so that one round does not pay for the last.
func rest(ctx context.Context) error { return wait(ctx, 200*time.Millisecond) }

// readActs reads what children wrote.
func readActs(file string) ([]interval, error) {
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read acts: %w", err)
	}
	var acts []interval
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var a interval
		if _, err := fmt.Sscanf(line, "act %d %d %d", &a.pid, &a.start, &a.end); err == nil {
			acts = append(acts, a)
		}
	}
	return acts, nil
}
