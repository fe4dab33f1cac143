//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// bench is one run.
type bench struct {
	bin      string // where the binaries are
	dir      string // scratch
	act      string // the measured child
	endpoint string
	rounds   int
	stderr   *os.File // what the wrappers say
	queue    *queue
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context) (int, error) {
	bin := flag.String("bin", "bin", "directory of conch, holdguard, etcdctl and etcd")
	rounds := flag.Int("rounds", 10, "rounds of the hand-over and the orphan; whole processes are run five times as often")
	asJSON := flag.Bool("json", false, "print one JSON object a line")
	only := flag.String("only", "", "one of whole, hand-over, orphan, memory, binary, election, pool, plain; default all")
	check := flag.Bool("check", false, "exit 1 when a target is missed")
	flag.Parse()

	// A place to work in, and something to work with.
	abs, err := filepath.Abs(*bin)
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "conch-bench")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	etcd, err := startEtcd(ctx, filepath.Join(abs, "etcd"), filepath.Join(dir, "etcd"))
	if err != nil {
		return 1, err
	}
	defer etcd.stop()
	b := &bench{bin: abs, dir: dir, rounds: max(*rounds, 1), endpoint: etcd.endpoint}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return 1, err
	}

	// Measure.
	var results []result
	for _, m := range b.measurements() {
		if *only != "" && *only != m.name {
			continue
		}
		r, err := m.take(ctx)
		if err != nil {
			return 1, err
		}
		results = append(results, r...)
	}
	if err := report(os.Stdout, machine(), results, *asJSON); err != nil {
		return 1, err
	}
	if len(results) == 0 || *check && missed(results) {
		return 1, nil
	}
	return 0, nil
}

// measurement is one thing that can be measured.
type measurement struct {
	name string
	take func(context.Context) ([]result, error)
}

func (b *bench) measurements() []measurement {
	return []measurement{
		{"whole", b.whole}, {"hand-over", b.handOver}, {"orphan", b.orphan}, {"memory", b.memory}, {"binary", b.binary},
		{"election", b.election}, {"pool", b.pool}, {"plain", b.plain},
	}
}

// open makes what the measurements need. close is due also after an error.
func (b *bench) open(ctx context.Context) (err error) {
	if b.stderr, err = os.OpenFile(filepath.Join(b.dir, "stderr"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	if b.act, err = b.buildAct(ctx); err != nil {
		return err
	}
	b.queue, err = newQueue(b.endpoint)
	return err
}

func (b *bench) close() {
	if b.stderr != nil {
		b.stderr.Close()
	}
	if b.queue != nil {
		b.queue.close()
	}
}

func (b *bench) program(name string) string { return filepath.Join(b.bin, name) }
