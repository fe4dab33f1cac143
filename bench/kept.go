//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/go-coord/coord/bench/plot"
)

// kept measures what it costs a process to keep many leases alive. Each kind has a process of its own, and all of them run at the same
// time: what the machine does besides is the same for all, and each is asked for its own processor time. A turn is a period
// of renewals: all of them come in it, at whatever moment. One period says little, since a collection of garbage may fall into it.
func (b *bench) kept(ctx context.Context) (o outcome, err error) {
	err = b.fresh(ctx, func(m *member) error {
		names := []string{"coord.Session", "concurrency.Session", "one stream, all at once"}
		keepers := make([]*keeper, len(names))
		defer func() {
			for _, k := range keepers {
				k.stop()
			}
		}()
		_, err := spread(ctx, len(names), func(i int) (err error) {
			keepers[i], err = startKeeper(ctx, names[i], m.endpoint, b.sessions, 3*b.keep)
			return err
		})
		if err != nil {
			return b.complain(err)
		}
		cpu, memory, err := b.lookAt(ctx, names, keepers)
		if err != nil {
			return err
		}
		n := plot.Number(float64(b.sessions))
		o.results = []result{
			compare(n+" leases kept, processor time", "ms/s", cpu[0], cpu[1]).atMost(1),
			compare(n+" leases kept, processor time", "ms/s", cpu[0], cpu[2]),
			compare(n+" leases kept, memory", "MB", memory[0], memory[1]),
		}
		return nil
	})
	return o, err
}

// lookAt asks the keepers before and after each period.
func (b *bench) lookAt(ctx context.Context, names []string, keepers []*keeper) (cpu, memory []series, err error) {
	cpu, memory = make([]series, len(names)), make([]series, len(names))
	before := make([]upkeep, len(names))
	// In the first period everything is renewed for the first time.
	for round := range 1 + b.rounds {
		for i, k := range keepers {
			if before[i], err = k.ask(); err != nil {
				return nil, nil, err
			}
		}
		if err := wait(ctx, b.keep); err != nil {
			return nil, nil, err
		}
		for i, k := range keepers {
			after, err := k.ask()
			if err != nil {
				return nil, nil, err
			}
			// What has given up costs nothing, and would win.
			if after.Alive != b.sessions {
				return nil, nil, fmt.Errorf("%w: %s: %d of %d sessions live", errBusy, names[i], after.Alive, b.sessions)
			}
			cpu[i].name, memory[i].name = names[i], names[i]
			if round > 0 {
				cpu[i].turns = append(cpu[i].turns, []float64{millis(after.Processor-before[i].Processor) / b.keep.Seconds()})
				memory[i].turns = append(memory[i].turns, []float64{after.Memory})
			}
		}
	}
	return cpu, memory, nil
}
