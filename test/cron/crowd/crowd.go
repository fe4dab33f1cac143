// Package crowd makes many jobs that are due at the same second, and tells how late each was started; beside them a bare
// loop that starts the same commands and does nothing else. The tests of cron use it, and the benchmarks.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// Name is the name of a job of the crowd.
func Name(i int) string { return "j" + strconv.Itoa(i) }

// Put puts n jobs that all have the same spec.
func Put(ctx context.Context, cli *clientv3.Client, n int, spec string) error {
	const batch = 100
	for from := 0; from < n; from += batch {
		var ops []clientv3.Op
		for i := from; i < min(n, from+batch); i++ {
			ops = append(ops, clientv3.OpPut(record.JobKey(Name(i)), spec))
		}
		if _, err := cli.Txn(ctx).Then(ops...).Commit(); err != nil {
			return fmt.Errorf("put jobs: %w", err)
		}
	}
	return nil
}

// Lateness waits for the first n results of the tick due, from a revision on, and gives how late each was started. A result that
// is not a success, or a second one of a job, is an error.
func Lateness(ctx context.Context, cli *clientv3.Client, n int, due time.Time, rev int64) (late []time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := map[string]bool{}
	for got := range cli.Watch(ctx, record.Results, clientv3.WithPrefix(), clientv3.WithRev(rev), clientv3.WithFilterDelete()) {
		if err := got.Err(); err != nil {
			return late, fmt.Errorf("wait for results: %w", err)
		}
		for _, ev := range got.Events {
			r, ok := record.Decode[record.Result](ev.Kv.Value)
			if !ok {
				return late, fmt.Errorf("no result at %s: %q", ev.Kv.Key, ev.Kv.Value)
			}
			if r.Status != record.Success || r.Tick != due.Unix() || ended[r.Job] {
				return late, fmt.Errorf("run %q of tick %d: %s %s %q", r.RunID, r.Tick, r.Status, r.Reason, r.Detail)
			}
			ended[r.Job] = true
			late = append(late, time.Duration(r.LateMS)*time.Millisecond)
			if len(ended) == n {
				return late, nil
			}
		}
	}
	return late, fmt.Errorf("wait for results: %d of %d: %w", len(ended), n, ctx.Err())
}

// Bare starts sh with a script n times, as fast as so many workers can, and gives how long after its begin each was started. The
// environment of each has the variables that a job has.
func Bare(n, workers int, script string) ([]time.Duration, error) {
	todo, late, failed := make(chan int), make([]time.Duration, n), make([]error, n)
	var all sync.WaitGroup
	began := time.Now()
	for range workers {
		all.Go(func() {
			for i := range todo {
				cmd := exec.Command("/bin/sh", "-c", script)
				cmd.Env = append(os.Environ(), "CONCH_NAME="+Name(i), "CONCH_TICK=0", "CONCH_REV=0")
				if failed[i] = cmd.Start(); failed[i] == nil {
					late[i] = time.Since(began)
					failed[i] = cmd.Wait()
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	all.Wait()
	return late, errors.Join(failed...)
}

// Script is what a job of the crowd does: it writes who it is at the end of a file. Discarded is the same, written nowhere.
func Script(path string) string {
	return fmt.Sprintf("echo $CONCH_NAME start $CONCH_TICK $CONCH_REV $$ >>%s", path)
}

// Discarded is a script with nothing of it kept.
func Discarded(script string) string { return strings.ReplaceAll(script, ">>", ">>/dev/null #") }

// Percentile of some times.
func Percentile(of []time.Duration, p int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}
